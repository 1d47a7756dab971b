#!/usr/bin/env bash
# From a clean checkout to a finished experiment: installs what is missing, builds, and runs experiments/quickstart.yaml.
#
#   deploy/quickstart.sh [arguments for `lengthwise run`]
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
esac
cd "$(dirname "$0")/.."

started=$SECONDS
step() { printf '\n== %s\n' "$*"; }
trap 'status=$?; [ $status = 0 ] || printf "\n== stopped with status %s after %s s\n" "$status" "$((SECONDS - started))" >&2' EXIT

step "1/3 installing what is missing (nothing to do the second time)"
deploy/install.sh
installed=$SECONDS
printf 'took %s s\n' "$((installed - started))"

step "2/3 building the server, the worker and the command line (some minutes on two cores the first time)"
bazel build //client:lengthwise //server:lengthwise_server //worker:lengthwise_worker
built=$SECONDS
printf 'took %s s\n' "$((built - installed))"

step "3/3 training and evaluating: lengthwise run experiments/quickstart.yaml (about 40 s on two idle cores)"
bazel-bin/client/lengthwise run experiments/quickstart.yaml "$@"
printf '\ninstall %s s, build %s s, experiment %s s\n' "$((installed - started))" "$((built - installed))" \
  "$((SECONDS - built))"
