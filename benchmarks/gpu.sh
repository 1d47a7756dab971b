#!/usr/bin/env bash
# Measures speed on a CUDA device in at most nine minutes: rooflines, our packs, ensembles of
# PyTorch and JAX, and Nsight Compute's counters for six kernels. Runs in a bundle
# (tests/gpu/bundle.sh) or in a built checkout. Prints "skipped: no CUDA device" without one.
#
#   benchmarks/gpu.sh [--rehearse]
#
# Writes to $OUT: steps.jsonl, with a line for each measurement; roofline.json, attention.json and
# layers.json; kernels.csv; and log.txt, the programs' messages, with the choice of kernels and its
# times. --rehearse runs everything once, tiny and on the CPU.
set -uo pipefail
device=cuda packs=(1 10 30) fixed=(40 20) drawn=1..40 precisions=(float32 bfloat16) steps=100 largest=30 compiling=max-autotune
timing=(--benchmark_min_time=0.2)
if [ "${1:-}" = --rehearse ]; then
  device=cpu packs=(1 2) fixed=(2) drawn=1..2 precisions=(float32) steps=2 largest=2 compiling=eager
  timing=(--benchmark_min_time=0.001 '--benchmark_filter=tokens:20|CrossEntropy')
fi
. "$(dirname "$0")/../tests/gpu/environment.sh"
[ $device = cpu ] || skip_without_cuda
find_libraries
steps_file=$results/steps.jsonl log=$results/log.txt
: >"$steps_file"
: >"$log"
# measure NAME SECONDS COMMAND...: appends the lines that the command prints, one for each case, and
# its messages to the log. Stops it after SECONDS.
measure() {
  local name=$1 seconds=$2 status=0 started=$SECONDS
  shift 2
  echo "== $name" >>"$log"
  within "$seconds" "$@" >>"$steps_file" 2>>"$log" || status=$?
  case $status in
    0) passed=$((passed + 1)) && echo "ok: $name ($((SECONDS - started)) s)" ;;
    124 | 137) echo "$name: stopped after $((SECONDS - started)) s; its measured cases count" ;;
    *) failed=$((failed + 1)) && echo "FAILED: $name ended with status $status ($((SECONDS - started)) s)" && tail -n 5 "$log" ;;
  esac
}

step "rooflines"
limit=40
check "rooflines" bash -o pipefail -c '"${@:2}" | tee "$1"' _ "$results/roofline.json" "$PYTHON" benchmarks/gpu_roofline.py

step "each of our kernels, and LibTorch's operators"
for name in attention layers; do
  limit=40
  check "$name" "${native[@]}" "$BIN/benchmarks/$name" --device=$device "${timing[@]}" --benchmark_out_format=json \
    --benchmark_out="$results/$name.json"
done

step "our packs, all in one process"
ours=("$BIN/benchmarks/training_step" --device $device --encoding randomized_relative)
measure "packs" 130 "${native[@]}" "${ours[@]}" --packs "${packs[@]}" --lengths "${fixed[@]}" "$drawn" \
  --precisions "${precisions[@]}" --steps $steps

for kernels in fused plain; do
  measure "the largest pack, $kernels kernels" 40 "${native[@]}" "${ours[@]}" --kernels $kernels --packs $largest \
    --lengths "${fixed[@]}" --precisions "${precisions[@]}" --steps $steps
done

step "Nsight Compute, the six kernels that take longest"
if [ $device = cpu ]; then
  echo "skipped in a rehearsal"
elif ! command -v ncu >/dev/null; then
  echo "not installed here"
else
  # The launches of our own kernels in the first step of ten models, which is not recorded yet, both
  # ways. With auto, the first launches would be those of its measurement.
  limit=60
  check "counters" bash -c '"${@:2}" >"$1"' _ "$results/kernels.csv" "${native[@]}" ncu --clock-control none --csv \
    --print-units base --kernel-name "regex:lengthwise" --kernel-name-base demangled --launch-count 120 \
    --section SpeedOfLight --section Occupancy --section LaunchStats \
    "${ours[@]}" --kernels fused --packs 10 --lengths 40 --steps 1
fi

step "ensembles"
# Forty lengths are recorded in most of a minute a pack. Compiling one takes as long, so only the
# largest ensemble is compiled, last and for as long as there is time.
pytorch=("$PYTHON" benchmarks/pytorch_ensemble_step.py --device $device --precision "${precisions[@]}" --steps $steps)
measure "PyTorch, recorded" 60 "${pytorch[@]}" --mode eager --packs "${packs[@]}" --lengths "${fixed[@]}"
measure "PyTorch, recorded, drawn lengths" 80 "${pytorch[@]}" --mode eager --packs "${packs[@]}" --lengths "$drawn"
if "$PYTHON" -c 'import jax' 2>/dev/null; then
  # By default JAX reserves three quarters of the device's memory.
  measure "JAX" 70 env XLA_PYTHON_CLIENT_PREALLOCATE=false "$PYTHON" benchmarks/jax_ensemble_step.py \
    --device $device --packs $largest --lengths "${fixed[@]}" --precision "${precisions[@]}" --steps $steps
else
  echo "$PYTHON has no jax: skipping JAX"
fi
measure "PyTorch, $compiling" 300 "${pytorch[@]}" --mode $compiling --packs $largest --lengths "${fixed[@]}"

step "model-steps a second"
tables=("$steps_file")
[ ! -s "$results/kernels.csv" ] || tables+=("$results/kernels.csv")
"$PYTHON" benchmarks/gpu_tables.py "${tables[@]}"
finish
