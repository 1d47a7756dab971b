#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test. Ends with the line "N passed, N failed[, N skipped]".
#
#   tests/run.sh [--long] [Bazel targets]
#
# --long adds what takes longer than a change should wait for: tests tagged "long".
set -euo pipefail
cd "$(dirname "$0")/.."

SAFETENSORS_VERSION=0.8.0

started=$SECONDS
step() { printf '\n== %s\n' "$*"; }
long=no
targets=()
for argument in "$@"; do
  case $argument in
    --long) long=yes ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) echo "unknown flag $argument; see tests/run.sh --help" >&2; exit 2 ;;
    *) targets+=("$argument") ;;
  esac
done
[ ${#targets[@]} -gt 0 ] || targets=(//...)
filter=(--build_tag_filters=-manual --test_tag_filters=-long)
[ $long = no ] || filter=(--build_tag_filters=-manual)

step "1/4 installing what is missing (nothing to do the second time)"
deploy/install.sh clang-format
# The package that other people open checkpoints with; users of Lengthwise do not need it. Without it its test is skipped.
test_tools="${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise/test-tools"
if "$test_tools/bin/python" -c "import safetensors; assert safetensors.__version__ == '$SAFETENSORS_VERSION'" 2>/dev/null ||
  { /usr/bin/python3 -m venv "$test_tools" &&
    "$test_tools/bin/pip" --disable-pip-version-check --quiet install "safetensors==$SAFETENSORS_VERSION"; }; then
  export LENGTHWISE_TEST_PYTHON="$test_tools/bin/python"
else
  echo "cannot install safetensors $SAFETENSORS_VERSION into $test_tools: its test will be skipped" >&2
fi

step "2/4 checking the formatting"
git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format --dry-run --Werror

step "3/4 building ${targets[*]} (some minutes on two cores the first time)"
bazel build "${filter[@]}" "${targets[@]}"
built=$SECONDS
printf 'took %s s so far\n' "$((built - started))"

step "4/4 testing"
events=$(mktemp)
trap 'rm -f "$events"' EXIT
status=0
bazel test "${filter[@]}" --keep_going --build_event_json_file="$events" "${targets[@]}" || status=$?
printf 'tests took %s s, everything %s s\n' "$((SECONDS - built))" "$((SECONDS - started))"
# Bazel says 3 when tests failed; anything else but 0 means that something did not run.
if [ $status != 0 ] && [ $status != 3 ]; then echo "bazel test ended with status $status" >&2; fi
/usr/bin/python3 tests/count_results.py "$events" || { [ $status != 0 ] || status=1; }
exit $status
