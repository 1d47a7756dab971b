#!/usr/bin/env bash
# Runs ensemble_steps_test.py with $LENGTHWISE_PEER_PYTHON: a Python with torch, and with jax for
# the JAX cases.
set -euo pipefail
if [ -z "${LENGTHWISE_PEER_PYTHON:-}" ]; then
  reason="LENGTHWISE_PEER_PYTHON is not set to a Python with torch"
  echo "skipped: $reason"
  echo "<testsuites><testsuite name=\"benchmarks\"><testcase classname=\"benchmarks\" name=\"ensemble_steps_test\">
<skipped message=\"$reason\"/></testcase></testsuite></testsuites>" >"${XML_OUTPUT_FILE:-/dev/null}"
  exit 0
fi
export TORCHINDUCTOR_CACHE_DIR=${TEST_TMPDIR:?run by Bazel}/inductor
exec "$LENGTHWISE_PEER_PYTHON" -B benchmarks/ensemble_steps_test.py --verbose
