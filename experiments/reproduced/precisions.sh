#!/usr/bin/env bash
# Trains the ten seeds of precisions.yaml in float32 and in bfloat16, and compares the accuracies.
# An interrupted run is resumed. Needs `lengthwise` on the PATH.
#
#   experiments/reproduced/precisions.sh [OPTIONS of `lengthwise run`, such as --workers 2]
#
# LENGTHWISE_RUNS_DIR names the directory of the runs; default ~/.local/share/lengthwise/runs.
set -euo pipefail
export LENGTHWISE_RUNS_DIR=${LENGTHWISE_RUNS_DIR:-$HOME/.local/share/lengthwise/runs}
specification=$(dirname "$0")/precisions.yaml
for precision in float32 bfloat16; do
  sed "s/bfloat16/$precision/g" "$specification" | lengthwise run - --threads 1 "$@"
done
lengthwise compare precision_float32 precision_bfloat16 --data_dir "$LENGTHWISE_RUNS_DIR"
