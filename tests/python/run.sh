#!/usr/bin/env bash
# Runs unittest modules with the packages of $LENGTHWISE_TEST_PYTHON, which tests/run.sh installs.
# Skips them without it.
#   run.sh [NAME=VALUE...] MODULE.py...
set -euo pipefail
while [[ ${1:-} == *=* ]]; do
  export "$1"
  shift
done
if [ -z "${LENGTHWISE_TEST_PYTHON:-}" ]; then
  reason="LENGTHWISE_TEST_PYTHON is not set to a Python with the packages that read exports; tests/run.sh installs one"
  echo "skipped: $reason"
  {
    echo '<testsuites><testsuite name="python">'
    for module in "$@"; do
      echo "<testcase classname=\"python\" name=\"$(basename "$module" .py)\"><skipped message=\"$reason\"/></testcase>"
    done
    echo '</testsuite></testsuites>'
  } >"${XML_OUTPUT_FILE:-/dev/null}"
  exit 0
fi
exec "$LENGTHWISE_TEST_PYTHON" -B tests/python/run_modules.py "$@"
