#!/usr/bin/env bash
# Needs only Python's standard library.
set -euo pipefail
exec python3 -B tests/floods/floods_test.py
