#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test. Ends with the line "N passed, N failed[, N skipped]".
#
#   tests/run.sh [--long[=PART,...]] [Bazel targets]
#
# --long adds what takes longer than a change should wait for; --long=PART adds one part of it:
#   asan    unit tests without LibTorch under AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan    the same under ThreadSanitizer
#   fuzz    libFuzzer on every target of tests/fuzz, $LENGTHWISE_FUZZ_SECONDS each (60)
#   faults  tests tagged "long": hundreds of kills, crashes at the third time that a failpoint is reached
set -euo pipefail
cd "$(dirname "$0")/.."

SAFETENSORS_VERSION=0.8.0
FUZZ_SECONDS="${LENGTHWISE_FUZZ_SECONDS:-60}"

started=$SECONDS
step() { printf '\n== %s\n' "$*"; }
parts=()
targets=()
for argument in "$@"; do
  case $argument in
    --long) parts=(asan tsan fuzz faults) ;;
    --long=*)
      IFS=, read -ra parts <<<"${argument#--long=}"
      for part in "${parts[@]}"; do
        [[ $part =~ ^(asan|tsan|fuzz|faults)$ ]] ||
          { echo "unknown part $part; see tests/run.sh --help" >&2; exit 2; }
      done
      ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) echo "unknown flag $argument; see tests/run.sh --help" >&2; exit 2 ;;
    *) targets+=("$argument") ;;
  esac
done
[ ${#targets[@]} -gt 0 ] || targets=(//...)
filter=(--build_tag_filters=-manual --test_tag_filters=-long,-manual)
# Tests of completion and of manual pages need shells and man; without them they are skipped.
packages=(clang-format fish groff-base man-db zsh)
[[ ! " ${parts[*]} " =~ " fuzz " ]] || packages+=(clang libclang-rt-14-dev)

step "1/4 installing what is missing (nothing to do the second time)"
deploy/install.sh "${packages[@]}"
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

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
status=0
# run_tests NAME FLAG... TARGET...: goes on after failures, which are counted at the end.
run_tests() {
  local name=$1 ended=0
  shift
  bazel test --keep_going --build_event_json_file="$results/$name" "$@" || ended=$?
  # Bazel says 3 when tests failed; anything else but 0 means that something did not run.
  if [ $ended != 0 ] && [ $ended != 3 ]; then echo "bazel test ended with status $ended" >&2; fi
  [ $ended = 0 ] || status=1
}

step "4/4 testing"
run_tests plain "${filter[@]}" "${targets[@]}"
printf 'tests took %s s, everything %s s\n' "$((SECONDS - built))" "$((SECONDS - started))"

# Tests of code that knows no LibTorch, whose own allocations and threads the sanitizers do not understand. Those of
# tests/faults are of processes, which do not get other code to see by it.
without_libtorch() {
  bazel cquery --noshow_progress 'tests(//...) except
    (rdeps(//..., @libtorch//:libtorch) union attr(tags, "manual|long", //...) union //tests/faults/...)' |
    sed 's/ (.*//' | sort -u
}
for part in "${parts[@]}"; do
  part_started=$SECONDS
  case $part in
    asan | tsan)
      step "long: unit tests with --config=$part"
      without_libtorch >"$results/$part.targets"
      run_tests "$part" "--config=$part" --target_pattern_file="$results/$part.targets"
      ;;
    faults)
      step "long: tests tagged long"
      run_tests faults --build_tag_filters=long,-manual --test_tag_filters=long,-manual //...
      ;;
    fuzz)
      step "long: fuzzing, $FUZZ_SECONDS s each"
      tests/fuzz/run.sh "$FUZZ_SECONDS" || status=1
      ;;
  esac
  printf '%s took %s s\n' "$part" "$((SECONDS - part_started))"
done

rm -f "$results"/*.targets
/usr/bin/python3 tests/count_results.py "$results"/* || status=1
exit $status
