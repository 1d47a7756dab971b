#!/usr/bin/env bash
# Packs what tests and benchmarks on a GPU machine need into one archive of at most 60 MB: stripped
# programs and tests, the scripts, and the libraries that a Python environment with PyTorch does not
# provide.
#
#   bazel build //server:lengthwise_server //worker:lengthwise_worker //client:lengthwise //benchmarks:training_step //benchmarks:layers \
#     //models/attention:tests //models/layers:tests //models/optimizers:tests //worker/training:tests //tests/golden:tests \
#     //models/networks:tests
#   tests/gpu/bundle.sh ARCHIVE [BIN]
#
# BIN is the folder with Bazel's programs; default bazel-bin. Each script takes at most nine minutes
# on a machine with a GPU and a Python with the torch release that the programs were built with.
# GPU_PYTHON names that Python; default python3.
#
#   tar -xzf ARCHIVE && cd lengthwise-gpu
#   tests/gpu/lease.sh      what decides about the kernels, in 400 s
#   tests/gpu/run.sh        the CUDA tests
#   tests/gpu/cell.sh       30 trials of a published cell, with a server and a worker that is killed once
#
# If $OUT is set, results are written there as they arrive: at most eight files a script. A script that
# runs out of time prints what it left out. Without a CUDA device each script says so and exits 0.
set -euo pipefail
archive=$(realpath -m "${1:?usage: tests/gpu/bundle.sh ARCHIVE [BIN]}")
bin=$(realpath -m "${2:-$(dirname "$0")/../../bazel-bin}")
cd "$(dirname "$0")/../.."

# The machines that were lent take 64 MiB.
MOST_BYTES=60000000
programs=(server/lengthwise_server worker/lengthwise_worker client/lengthwise benchmarks/training_step
  benchmarks/layers)
# Each has the tests of its folder; tests/gpu/run.sh runs those that need a GPU.
tests=(models/attention/tests models/layers/tests models/optimizers/tests worker/training/tests tests/golden/tests
  models/networks/tests)
texts=(tests/gpu/environment.sh tests/gpu/run.sh tests/gpu/lease.sh tests/gpu/cell.sh
  benchmarks/gpu_roofline.py benchmarks/gpu_tables.py benchmarks/compare_training_step.py benchmarks/ensemble_benchmark.py
  benchmarks/pytorch_step.py benchmarks/pytorch_ensemble_step.py benchmarks/jax_ensemble_step.py
  benchmarks/python_network_steps.py)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/lengthwise-gpu
mkdir -p "$bundle/lib"
for file in "${programs[@]}" "${tests[@]}"; do
  [ -x "$bin/$file" ] || { echo "$bin/$file is missing: build it first (tests/gpu/bundle.sh says how)" >&2; exit 1; }
  install -D -m 755 "$bin/$file" "$bundle/bazel-bin/$file"
  strip "$bundle/bazel-bin/$file"
done
mkdir -p "$bundle/tests/golden/randomized_positional_encodings"
cp -r tests/golden/randomized_positional_encodings/model{,_full} "$bundle/tests/golden/randomized_positional_encodings/"
for file in "${texts[@]}"; do
  install -D -m "$([ -x "$file" ] && echo 755 || echo 644)" "$file" "$bundle/$file"
done
# LibTorch and CUDA's libraries come from the environment with PyTorch, the C and C++ libraries from
# the system. A newer C library does not work with an older loader, nor PyTorch's libraries with an
# older C++ library in the same process.
(cd "$bin" && ldd "${programs[@]}" "${tests[@]}") | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p' | sort -u |
  while read -r library; do
    case $(basename "$library") in
      libtorch* | libc10* | libcudart* | libcupti* | libgomp* | libstdc++* | libgcc_s* | ld-linux* | libc.so* | libm.so* | \
        libdl.so* | librt.so* | libpthread.so* | libutil.so* | libresolv.so*) ;;
      *) install -m 644 "$(readlink -f "$library")" "$bundle/lib/$(basename "$library")" && strip "$bundle/lib/$(basename "$library")" ;;
    esac
  done
revision=$("$bundle/bazel-bin/worker/lengthwise_worker" --version | head -1)
printf '%s\n' "$revision" >"$bundle/revision"
mkdir -p "$(dirname "$archive")"
tar -C "$work" --sort=name --owner=0 --group=0 -czf "$archive" lengthwise-gpu
bytes=$(stat -c %s "$archive")
echo "$archive: $bytes bytes, $revision"
[ "$bytes" -le $MOST_BYTES ] || { echo "that is more than $MOST_BYTES bytes" >&2; exit 1; }
