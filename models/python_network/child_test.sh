#!/usr/bin/env bash
# Runs child_test.py with a Python that has PyTorch.
set -euo pipefail
export LENGTHWISE_PYTHON_NETWORKS=${LENGTHWISE_PYTHON_NETWORKS:-/usr/bin/python3}
if ! "$LENGTHWISE_PYTHON_NETWORKS" -c 'import torch'; then
  reason="$LENGTHWISE_PYTHON_NETWORKS has no PyTorch"
  echo "skipped: $reason"
  echo "<testsuites><testsuite name=\"python_network\"><testcase classname=\"python_network\" name=\"child_test\">
<skipped message=\"$reason\"/></testcase></testsuite></testsuites>" >"${XML_OUTPUT_FILE:-/dev/null}"
  exit 0
fi
exec "$LENGTHWISE_PYTHON_NETWORKS" -B models/python_network/child_test.py --verbose
