# shellcheck shell=bash disable=SC2034
# Sourced by lease.sh, run.sh and cell.sh, in a checkout or an unpacked bundle (bundle.sh). Changes to its root, sets
# PYTHON, BIN and scratch, and defines functions that run and count checks. The caller sets `set -uo pipefail`.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
PYTHON=${GPU_PYTHON:-python3}
BIN=$PWD/bazel-bin
OUT=${OUT:-}
failed=0 passed=0
# Checks end by this many seconds after the script's start: nine minutes, less what tables and the
# kill of a program that ignores SIGTERM take.
END_BY=520
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Folder for results. They are written to $OUT itself, because a script that is stopped by force
# could not copy them.
results=${OUT:-$scratch}
mkdir -p "$results"

# skip_without_cuda: exits with 0 if there is no CUDA device.
skip_without_cuda() {
  timeout 30 nvidia-smi --list-gpus 2>/dev/null | grep -q . && return
  echo "skipped: no CUDA device"
  exit 0
}

# find_libraries: sets `native`, the prefix of every command that runs one of our programs. It lets
# the program find LibTorch and CUDA's libraries in $PYTHON's packages, and the bundle's own. Python
# keeps its own libraries.
find_libraries() {
  local packages
  packages=$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) ||
    { echo "$PYTHON has no torch: set GPU_PYTHON to a Python that has it" >&2; exit 1; }
  native=(env "LD_LIBRARY_PATH=$(printf '%s:' "$PWD/lib" "$packages/lib" "$packages"/../nvidia/*/lib)${LD_LIBRARY_PATH:-}")
}

step() { printf '\n== %s (%s s so far)\n' "$*" "$SECONDS"; }

# within SECONDS COMMAND...: runs the command, and stops it after SECONDS or at $END_BY. Its status is
# then 124, or 137 if it ignored SIGTERM.
within() {
  local seconds=$1 left=$((END_BY - SECONDS))
  shift
  [ $left -ge 1 ] || { echo "no time left"; return 124; }
  timeout --kill-after=10 $((seconds < left ? seconds : left)) "$@"
}

# check NAME COMMAND...: runs the command for at most $limit seconds and counts the result.
check() {
  local name=$1 started=$SECONDS status=0
  shift
  within "${limit:-120}" "$@" || status=$?
  if [ $status = 0 ]; then
    passed=$((passed + 1))
    echo "ok: $name ($((SECONDS - started)) s)"
  else
    failed=$((failed + 1))
    echo "FAILED: $name ended with status $status ($((SECONDS - started)) s)"
  fi
}

finish() {
  echo
  echo "$passed passed, $failed failed, after $SECONDS s"
  [ $failed = 0 ]
}
