#!/bin/sh
# Runs a test with the suppressions in this folder.
#
# suppress_equal_addresses=0: otherwise ThreadSanitizer compares every race with the addresses of
# all earlier ones, one by one. A message of 3 MB that gRPC passes to another thread produces so
# many suppressed races that a test hangs for minutes.
TSAN_OPTIONS="suppressions=$TEST_SRCDIR/$TEST_WORKSPACE/tests/sanitizers/tsan.supp suppress_equal_addresses=0 $TSAN_OPTIONS" exec "$@"
