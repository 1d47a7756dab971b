#!/usr/bin/env bash
# Python's standard library is all that it needs.
set -euo pipefail
exec python3 -B tests/floods/floods_test.py
