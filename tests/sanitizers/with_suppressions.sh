#!/bin/sh
# Runs a test with the suppressions beside this file.
#
# suppress_equal_addresses=0: ThreadSanitizer would look every race up among the addresses of those before, one by one. In a
# message of 3 MB that gRPC hands to another thread, suppressed, these are so many that a test stands still for minutes.
TSAN_OPTIONS="suppressions=$TEST_SRCDIR/$TEST_WORKSPACE/tests/sanitizers/tsan.supp suppress_equal_addresses=0 $TSAN_OPTIONS" exec "$@"
