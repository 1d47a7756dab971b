#!/usr/bin/env bash
# Runs what README.md, docs/your_own_data.md and python/examples/README.md print the numbers of, and writes what it prints
# here into them. Then draws the pictures of the quickstart, which trains README.md's models, so that they agree with its table.
# Their tests (//tests/documentation/..., //tests/python/...) fail on a processor of this kind when the numbers have changed.
#
#   docs/refresh_numbers.sh        with the Python of tests/run.sh, or LENGTHWISE_TEST_PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
bazel build //client:lengthwise //server:lengthwise_server //worker:lengthwise_worker
programs=$PWD/bazel-bin
for document in README.md docs/your_own_data.md; do
  tests/documentation/run_documented.py "$document" --rewrite --lengthwise "$programs/client/lengthwise" \
    --lengthwise_server "$programs/server/lengthwise_server" --lengthwise_worker "$programs/worker/lengthwise_worker"
done
REWRITE=1 CLIENT=$programs/client/lengthwise SERVER=$programs/server/lengthwise_server \
  WORKER=$programs/worker/lengthwise_worker \
  "${LENGTHWISE_TEST_PYTHON:-$HOME/.cache/lengthwise/test-tools/bin/python}" -B tests/python/run_modules.py \
  tests/python/examples_test.py
export PATH=$programs/client:$PATH
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
lengthwise run quickstart --data_dir "$runs"
lengthwise plot quickstart --figure accuracy_by_length -o docs/accuracy_by_length.svg --data_dir "$runs"
for command in "results quickstart" "attention quickstart/1 --length 20 --layer 2"; do
  # The words of a command are words of this one.
  docs/terminal_picture.py --out "docs/${command%% *}.svg" --rows 60 --show "lengthwise $command" -- \
    lengthwise $command --data_dir "$runs"
done
git --no-pager diff --stat README.md docs python/examples/README.md
