#!/usr/bin/env bash
# Needs only Python's standard library.
set -euo pipefail
exec python3 -B tests/python/run_modules.py tests/floods/floods_test.py
