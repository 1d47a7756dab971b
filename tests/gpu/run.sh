#!/usr/bin/env bash
# Runs the tests that need a CUDA device, and compares training with and without recorded steps. At
# most nine minutes. Runs in a bundle (tests/gpu/bundle.sh) or in a built checkout. Prints "skipped:
# no CUDA device" without one.
#
#   tests/gpu/run.sh [--rehearse]
#
# --rehearse: runs without a CUDA device, too. Checks libraries, and that every test starts and
# skips.
set -uo pipefail
rehearse=no
[ "${1:-}" != --rehearse ] || rehearse=yes
. "$(dirname "$0")/environment.sh"
[ $rehearse = yes ] || skip_without_cuda
find_libraries
log=$results/cuda_tests.log

step "libraries"
# In a bundle, also checks that only the C and C++ libraries come from this system.
no_library_is_missing() {
  local found
  found=$(ldd "$1") || return
  ! grep 'not found' <<<"$found" || return
  [ ! -d lib ] || ! grep -vE "=> ($PWD/lib/|/[^ ]*/(site|dist)-packages/|/[^ ]*/lib(stdc\\+\\+|gcc_s|c|m|dl|rt|pthread|util|resolv)\\.so)|linux-vdso|^\\s*/[^ ]*/ld-linux" <<<"$found"
}
export -f no_library_is_missing
tests=(models/attention/fused_cuda_test models/layers/fused_layers_cuda_test models/optimizers/adam_cuda_test
  worker/training/pack_model_cuda_test tests/golden/device_models_test models/networks/pack_precision_test)
# The program with the tests of a folder.
program_of() { printf '%s/tests' "$(dirname "$1")"; }
for program in server/lengthwise_server worker/lengthwise_worker client/lengthwise benchmarks/training_step \
  $(for test in "${tests[@]}"; do program_of "$test"; echo; done); do
  check "$program finds its libraries" "${native[@]}" bash -c 'no_library_is_missing "$1"' _ "$BIN/$program"
done
version=$("${native[@]}" "$BIN/worker/lengthwise_worker" --version)
echo "$version"
with_kernels() { grep -q '^with CUDA kernels' <<<"$version" && ! grep '^warning' <<<"$version"; }
export version
export -f with_kernels
check "the worker was built with CUDA kernels and has no warning" bash -c with_kernels

step "CUDA tests"
export OMP_NUM_THREADS=1
# Lists skipped tests. On a device a skipped test is a failure, because it shows nothing.
ran_all() {
  "$1" --tests_of="$4.cc" 2>&1 | tee -a "$3" | grep -E '^\[  (PASSED|FAILED|SKIPPED) |^skipped|Failure' | sort | uniq -c
  local status=${PIPESTATUS[0]}
  local skipped
  skipped=$(tail -n 20 "$3" | sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' | tail -1)
  [ "$status" = 0 ] || return 1
  if [ "$2" = yes ]; then [ "${skipped:-0}" -gt 0 ]; else [ "${skipped:-0}" = 0 ]; fi
}
export -f ran_all
limit=180
for test in "${tests[@]}"; do
  check "$test, $([ $rehearse = yes ] && echo skipped || echo 'none skipped')" \
    "${native[@]}" bash -c 'ran_all "$@"' _ "$BIN/$(program_of "$test")" $rehearse "$log" "$test"
done

step "forty lengths, recorded when they first come up and replayed afterwards, without a warning"
# --kernels is set: auto logs its choice to the same stream as warnings.
device=cuda lengths=1..40 packs=3 steps=80
[ $rehearse = no ] || device=cpu lengths=1..3 packs=1 steps=3
no_warning() {
  local status=0
  "${@:2}" 2>"$1" || status=$?
  ! grep . "$1" && [ $status = 0 ]
}
export -f no_warning
for kernels in fused plain; do
  for precision in float32 bfloat16; do
    check "lengths $lengths in $precision, $kernels kernels" "${native[@]}" bash -c 'no_warning "$@"' _ "$scratch/warnings" \
      "$BIN/benchmarks/training_step" --device $device --kernels $kernels --precision $precision --lengths $lengths \
      --packs $packs --steps $steps
  done
done

step "compute-sanitizer"
if [ $rehearse = yes ]; then
  echo "skipped in a rehearsal"
elif ! command -v compute-sanitizer >/dev/null; then
  echo "not installed here"
else
  limit=100
  for lengths in 7 40; do
    check "memcheck at length $lengths" "${native[@]}" compute-sanitizer --tool memcheck --error-exitcode 3 \
      "$BIN/benchmarks/training_step" --device cuda --kernels fused --lengths $lengths --packs 2 --steps 1
  done
fi
finish
