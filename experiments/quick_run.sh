#!/usr/bin/env bash
# Trains a quick experiment, and puts its results and pictures into the page of its folder. The same call resumes an interrupted run.
# Needs `lengthwise` on the PATH, and a python3 with the Python package for the pictures.
#
#   experiments/quick_run.sh SPECIFICATION MACHINE [OPTIONS of `lengthwise run`, such as --workers 2]
#
# MACHINE names the machine on the page: "two cores of an Intel Xeon, one thread a trial". LENGTHWISE_RUNS_DIR names the directory of the
# runs; default ~/.local/share/lengthwise/runs.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
specification=${1:?SPECIFICATION is missing}
machine=${2:?MACHINE is missing: where this is trained, for the page}
shift 2
name=$(sed -n 's/^name: *//p' "$specification")
runs=${LENGTHWISE_RUNS_DIR:-$HOME/.local/share/lengthwise/runs}/$name
nice -n 19 lengthwise run "$specification" --data_dir "$runs" "$@"
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
lengthwise publish "$name" -o "$site/site" --data_dir "$runs"
for figure in $(sed -n "s/^<!-- results of $name .*drawn as \(.*\) -->/\1/p" "$here"/*/README.md); do
  lengthwise plot "$name" --figure "$figure" -o "$site/site/figures/$figure.svg" --data_dir "$runs"
done
"${LENGTHWISE_PYTHON:-python3}" "$here/quick_pages.py" --add "$site/site" --machine "$machine"
