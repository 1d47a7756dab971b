#!/usr/bin/env bash
# What says most about the kernels, in the few minutes for which a GPU is lent: kernels right, whole
# steps beside PyTorch's, times and stalls of each kernel; and what a user's PyTorch module costs
# there. benchmarks/README.md (On a GPU) has what was measured.
# Runs in a bundle (tests/gpu/bundle.sh) or in a built checkout. Prints "skipped: no CUDA device"
# without one.
#
#   tests/gpu/lease.sh [--again] [--rehearse]
#
# At most 400 s. --again: kernels on tensor cores and steps alone, in at most 200 s, after those were changed.
# --rehearse: runs without a CUDA device, tiny, as far as a CPU can, in four times as long.
#
# Writes to $OUT as results arrive: roofline.json; kernels.csv, the time of each kernel of a step;
# stalls.txt, why those on tensor cores wait; steps.jsonl; module.txt; cuda_tests.log; log.txt, also
# with what --kernels auto measured.
set -uo pipefail
again=no rehearse=no
for argument in "$@"; do
  case $argument in
    --again) again=yes ;;
    --rehearse) rehearse=yes ;;
    *) echo "lease.sh: unknown argument $argument; accepted: --again, --rehearse" >&2; exit 2 ;;
  esac
done
. "$(dirname "$0")/environment.sh"
[ $rehearse = yes ] || skip_without_cuda
find_libraries
# What decides comes first, because a lease may end before the rest. Each part has these seconds, and
# what the parts before it left.
parts=(rooflines:30 tests:45 steps:140 races:60 kernel_times:60 module:50)
[ $again = no ] || parts=(tests:40 steps:110 races:50)
device=cuda precision=bfloat16 packs=(30 1) lengths=(40 20) drawn=1..40 steps=60 slower=1 batch=128
[ $rehearse = no ] || device=cpu precision=float32 packs=(2 1) lengths=(2) drawn=1..2 steps=2 slower=4 batch=2
step_program=("$BIN/benchmarks/training_step" --device $device --encoding randomized_relative)
steps_file=$results/steps.jsonl log=$results/log.txt
: >"$steps_file"
: >"$log"

# On a device tests must pass, none skipped; in a rehearsal they must start and skip.
tests_ran() {
  local output status=0
  output=$("${@:2}" 2>&1) || status=$?
  printf '%s\n' "$output" | tee -a "$results/cuda_tests.log" | grep -E '^\[  (PASSED|FAILED|SKIPPED) |Failure' | sort | uniq -c
  [ $status = 0 ] || return 1
  [ "$1" = no ] || { grep -q '^\[  SKIPPED' <<<"$output"; return; }
  grep -q '^\[  PASSED  \] [1-9]' <<<"$output" && ! grep -q '^\[  SKIPPED' <<<"$output"
}

export results
export -f tests_ran

# each SECONDS: the most that each of the checks that follow takes.
each() { limit=$(($1 * slower)); }

# append NAME FILE COMMAND...: a check whose output is appended to the file as it comes, and whose
# messages are appended to the log.
append() { check "$1" bash -c 'exec "${@:3}" >>"$1" 2>>"$2"' _ "$2" "$log" "${@:3}"; }

attention=("$BIN/models/attention/tests" --tests_of=models/attention/fused_cuda_test.cc)
feed_forward=("$BIN/models/layers/tests" --tests_of=models/layers/fused_layers_cuda_test.cc --gtest_filter='*OnTensorCores*')

rooflines() {
  step "rooflines"
  each 30
  append "rooflines" "$results/roofline.json" "$PYTHON" benchmarks/gpu_roofline.py
}

tests() {
  step "the kernels on tensor cores against double precision, and the same bits again"
  each 60
  check "attention on tensor cores" bash -c 'tests_ran "$@"' _ $rehearse "${native[@]}" "${attention[@]}" --gtest_filter='TensorAttentionCuda*'
  each 20
  check "feed-forward on tensor cores" bash -c 'tests_ran "$@"' _ $rehearse "${native[@]}" "${feed_forward[@]}"
}

races() {
  step "races"
  if [ $rehearse = yes ] || ! command -v compute-sanitizer >/dev/null; then
    echo "no compute-sanitizer: races are not looked for"
    return
  fi
  local racecheck=("${native[@]}" compute-sanitizer --tool racecheck --error-exitcode 3)
  each 50
  check "no races in attention" "${racecheck[@]}" "${attention[@]}" --gtest_filter='TensorAttentionCuda*'
  each 20
  check "no races in the feed-forward layer" "${racecheck[@]}" "${feed_forward[@]}"
}

# One program after another for each pack: a second lease makes the second round.
steps() {
  step "whole steps: kernels by measurement, without tensor cores, LibTorch's operators, PyTorch's ensemble"
  each 60
  local ours=("${native[@]}" "${step_program[@]}" --steps $steps)
  local peer=("$PYTHON" benchmarks/pytorch_ensemble_step.py --device $device --mode eager --steps $steps)
  for pack in "${packs[@]}"; do
    for kernels in auto fused; do
      append "$pack, --kernels $kernels" "$steps_file" "${ours[@]}" --precisions $precision --kernels $kernels --packs "$pack" \
        --lengths "${lengths[@]}" "$drawn"
    done
    append "$pack, --kernels plain" "$steps_file" "${ours[@]}" --precisions $precision --kernels plain --packs "$pack" \
      --lengths "${lengths[@]}"
    append "$pack, PyTorch" "$steps_file" "${peer[@]}" --precision $precision --packs "$pack" --lengths "${lengths[@]}"
  done
  # What packs without bfloat16 have, and PyTorch's forty lengths, which take long to record.
  for kernels in plain fused; do
    append "float32, --kernels $kernels" "$steps_file" "${ours[@]}" --precisions float32 --kernels $kernels --packs "${packs[0]}" \
      --lengths "${lengths[0]}"
  done
  append "tf32" "$steps_file" "${ours[@]}" --precisions tf32 --kernels auto --packs "${packs[0]}" --lengths "${lengths[0]}"
  append "float32, PyTorch" "$steps_file" "${peer[@]}" --precision float32 --packs "${packs[0]}" --lengths "${lengths[0]}"
  append "$drawn, PyTorch" "$steps_file" "${peer[@]}" --precision $precision --packs "${packs[0]}" --lengths "$drawn"
  grep -h 'kernels for' "$log"
  "$PYTHON" benchmarks/gpu_tables.py "$steps_file"
}

kernel_times() {
  step "each kernel of a step"
  each 50
  if [ $rehearse = no ] && command -v ncu >/dev/null; then
    local one_step=("${step_program[@]}" --kernels auto --precisions $precision --packs "${packs[0]}" --lengths "${lengths[0]}" --steps 1)
    local counting=("${native[@]}" ncu --profile-from-start off --clock-control none)
    append "ncu" "$results/kernels.csv" "${counting[@]}" --metrics gpu__time_duration.sum --csv --print-units base \
      --kernel-name-base demangled "${one_step[@]}"
    append "ncu, stalls" "$results/stalls.txt" "${counting[@]}" --section SpeedOfLight --section Occupancy --section WarpStateStats \
      --section SchedulerStats --section MemoryWorkloadAnalysis \
      --kernel-name 'regex:^Tensor' --launch-count 4 "${one_step[@]}"
    "$PYTHON" benchmarks/gpu_tables.py "$results/kernels.csv"
    return
  fi
  echo "no ncu: our kernels and LibTorch's operators by events"
  local timing=(--benchmark_min_time=0.1)
  [ $rehearse = no ] || timing=(--benchmark_min_time=0.001 '--benchmark_filter=CrossEntropy')
  check "layers" "${native[@]}" "$BIN/benchmarks/layers" --device=$device "${timing[@]}" --benchmark_out_format=json \
    --benchmark_out="$results/layers.json"
}

# Programs and Python keep their own libraries.
module() {
  step "a PyTorch module on the device, and a plain loop with it"
  each 60
  printf '#!/bin/sh\nunset LD_LIBRARY_PATH\nexec %q "$@"\n' "$(command -v "$PYTHON")" >"$scratch/python"
  { echo '#!/usr/bin/env bash' && printf '%q ' exec "${native[@]}" "$BIN/client/lengthwise" && echo '"$@"'; } >"$scratch/lengthwise"
  chmod +x "$scratch/python" "$scratch/lengthwise"
  # In a rehearsal the module's numbers are copied, too.
  append "module" "$results/module.txt" env LENGTHWISE="$scratch/lengthwise" LENGTHWISE_PYTHON_NETWORKS="$scratch/python" \
    "$PYTHON" benchmarks/python_network_steps.py --device "$device:0" --steps $steps --rounds 1 \
    --batch $batch --length "${lengths[0]}"
  cat "$results/module.txt"
}

END_BY=0
for part in "${parts[@]}"; do
  END_BY=$((END_BY + slower * ${part#*:}))
  ${part%:*}
done
finish
