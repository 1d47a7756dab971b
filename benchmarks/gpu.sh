#!/usr/bin/env bash
# Measures speed on a CUDA device in at most nine minutes: rooflines, our packs, ensembles of
# PyTorch and JAX, and Nsight Compute's counters for six kernels. Runs in a bundle
# (tests/gpu/bundle.sh) or in a built checkout. Prints "skipped: no CUDA device" without one.
#
#   benchmarks/gpu.sh [--rehearse]
#
# Writes steps.jsonl, with a line for each measurement, and kernels.csv to $OUT. --rehearse runs
# everything once, tiny and on the CPU.
set -uo pipefail
device=cuda packs=(1 10 30) lengths=(20 40 1..40) fixed=(40 20) precisions=(float32 bfloat16) steps=200 largest=30 compiling=max-autotune
timing=(--benchmark_min_time=0.2)
if [ "${1:-}" = --rehearse ]; then
  device=cpu packs=(1 2) lengths=(1..2) fixed=(2) precisions=(float32) steps=2 largest=2 compiling=eager
  timing=(--benchmark_min_time=0.001 '--benchmark_filter=tokens:20|CrossEntropy')
fi
. "$(dirname "$0")/../tests/gpu/environment.sh"
[ $device = cpu ] || skip_without_cuda
find_libraries
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
results=$scratch/steps.jsonl
: >"$results"
# measure NAME SECONDS COMMAND...: appends the lines that the command prints, one for each case.
# Stops it after SECONDS.
measure() {
  local name=$1 seconds=$2 status=0 started=$SECONDS
  shift 2
  timeout "$seconds" "$@" >>"$results" || status=$?
  case $status in
    0) passed=$((passed + 1)) && echo "ok: $name ($((SECONDS - started)) s)" ;;
    124) echo "$name: stopped after $seconds s; its measured cases count" ;;
    *) failed=$((failed + 1)) && echo "FAILED: $name ended with status $status ($((SECONDS - started)) s)" ;;
  esac
}

step "rooflines"
"$PYTHON" benchmarks/gpu_roofline.py | tee "$scratch/roofline.json"

step "each of our kernels, and LibTorch's operators"
for name in attention layers; do
  limit=40
  check "$name" "${native[@]}" "$BIN/benchmarks/$name" --device=$device "${timing[@]}" --benchmark_out_format=json \
    --benchmark_out="$scratch/$name.json"
done

step "our packs, all in one process"
ours=("$BIN/benchmarks/training_step" --device $device --encoding randomized_relative)
measure "packs" 100 "${native[@]}" "${ours[@]}" --packs "${packs[@]}" --lengths "${lengths[@]}" \
  --precisions "${precisions[@]}" --steps $steps

for kernels in fused plain; do
  measure "the largest pack, $kernels kernels" 15 "${native[@]}" "${ours[@]}" --kernels $kernels --packs $largest \
    --lengths "${fixed[@]}" --precisions "${precisions[@]}" --steps $steps
done

step "ensembles"
# Recording forty lengths takes seconds. Compiling one takes most of a minute, so only the largest
# ensemble is compiled.
measure "PyTorch, recorded" 60 "$PYTHON" benchmarks/pytorch_ensemble_step.py --device $device --mode eager \
  --packs "${packs[@]}" --lengths "${lengths[@]}" --precision "${precisions[@]}" --steps $steps
measure "PyTorch, $compiling" 190 "$PYTHON" benchmarks/pytorch_ensemble_step.py --device $device --mode $compiling \
  --packs $largest --lengths "${fixed[@]}" --precision "${precisions[@]}" --steps $steps
if "$PYTHON" -c 'import jax' 2>/dev/null; then
  # By default JAX reserves three quarters of the device's memory.
  measure "JAX" 70 env XLA_PYTHON_CLIENT_PREALLOCATE=false "$PYTHON" benchmarks/jax_ensemble_step.py \
    --device $device --packs $largest --lengths "${fixed[@]}" --precision "${precisions[@]}" --steps $steps
else
  echo "$PYTHON has no jax: skipping JAX"
fi

step "Nsight Compute, the six kernels that take longest"
if [ $device = cpu ]; then
  echo "skipped in a rehearsal"
elif ! command -v ncu >/dev/null; then
  echo "not installed here"
else
  # A step of ten models before it is recorded: the first launches of our own kernels.
  limit=60
  check "counters" bash -c '"${@:2}" >"$1"' _ "$scratch/kernels.csv" "${native[@]}" ncu --clock-control none --csv \
    --kernel-name "regex:lengthwise" --kernel-name-base demangled --launch-skip 6 --launch-count 30 \
    --section SpeedOfLight --section Occupancy --section LaunchStats \
    "${ours[@]}" --packs 10 --lengths 40 --steps 1
fi

step "model-steps a second"
tables=("$results")
[ ! -s "$scratch/kernels.csv" ] || tables+=("$scratch/kernels.csv")
"$PYTHON" benchmarks/gpu_tables.py "${tables[@]}"
keep "$scratch"/*
finish
