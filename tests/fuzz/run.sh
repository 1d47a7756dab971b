#!/usr/bin/env bash
# Searches with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer. Needs clang and
# libclang-rt.
#
#   tests/fuzz/run.sh SECONDS [TARGET...]
#
# TARGET is a folder of tests/fuzz/corpus; default: all, one after another, SECONDS each. A failing
# input is saved as fuzz-TARGET-crash-... in the current directory. Add it to the corpus together
# with the fix.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=$1
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=($(ls tests/fuzz/corpus))
bazel build --config=fuzz $(printf '//tests/fuzz:%s_fuzz ' "${targets[@]}")
status=0
for target in "${targets[@]}"; do
  binary=$(bazel cquery --config=fuzz --output=starlark --starlark:expr='target.files_to_run.executable.path' \
    "//tests/fuzz:${target}_fuzz" 2>/dev/null)
  found=$(mktemp -d)
  echo "== $target"
  # New inputs go to the first folder.
  "$binary" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="fuzz-$target-" "$found" "tests/fuzz/corpus/$target" || { echo "failed: fuzzing $target"; status=1; }
  rm -rf "$found"
done
exit $status
