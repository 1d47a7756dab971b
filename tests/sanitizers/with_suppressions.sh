#!/bin/sh
# Runs a test with the suppressions in this folder.
#
# suppress_equal_addresses=0: otherwise ThreadSanitizer compares every race with the addresses of
# all earlier ones, one by one. A message of 3 MB that gRPC passes to another thread produces so
# many suppressed races that a test hangs for minutes.
#
# history_size=7: the longest memory of accesses. A race whose earlier stack is forgotten matches no
# suppression.
options="suppressions=$TEST_SRCDIR/$TEST_WORKSPACE/tests/sanitizers/tsan.supp suppress_equal_addresses=0 history_size=7"
TSAN_OPTIONS="$options $TSAN_OPTIONS" exec "$@"
