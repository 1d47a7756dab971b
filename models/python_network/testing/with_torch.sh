#!/usr/bin/env bash
# Runs a test, such as models/python_network/child_test.py, with a Python that has PyTorch. Skips it without one.
set -euo pipefail
export LENGTHWISE_PYTHON_NETWORKS=${LENGTHWISE_PYTHON_NETWORKS:-/usr/bin/python3}
if ! "$LENGTHWISE_PYTHON_NETWORKS" -c 'import torch'; then
  reason="$LENGTHWISE_PYTHON_NETWORKS has no PyTorch"
  echo "skipped: $reason"
  echo "<testsuites><testsuite name=\"with_torch\"><testcase classname=\"with_torch\" name=\"$1\">
<skipped message=\"$reason\"/></testcase></testsuite></testsuites>" >"${XML_OUTPUT_FILE:-/dev/null}"
  exit 0
fi
exec "$LENGTHWISE_PYTHON_NETWORKS" -B "$1" --verbose
