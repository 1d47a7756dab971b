#!/bin/sh
# Runs a test with the suppressions beside this file.
TSAN_OPTIONS="suppressions=$TEST_SRCDIR/$TEST_WORKSPACE/tests/sanitizers/tsan.supp $TSAN_OPTIONS" exec "$@"
