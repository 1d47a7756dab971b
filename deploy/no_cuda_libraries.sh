#!/usr/bin/env bash
# Makes stand-ins for the libraries of CUDA that a worker is linked to: they have what it uses of them, and their functions
# answer cudaErrorInsufficientDriver. With a PyTorch for the CPU, the loader takes them instead.
#
#   deploy/no_cuda_libraries.sh WORKER DIR
#
# A worker without kernels for CUDA needs none, and DIR stays empty.
set -euo pipefail
worker=${1:?usage: deploy/no_cuda_libraries.sh WORKER DIR}
directory=${2:?usage: deploy/no_cuda_libraries.sh WORKER DIR}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(readelf --dynamic --wide "$worker" | sed -n 's/.*(NEEDED).*\[\(libc10_cuda\.so\|libcudart\.so\..*\)\]/\1/p'); do
  library=$(ldd "$worker" | sed -n "s/^\t$name => \(\/[^ ]*\) .*/\1/p")
  [ -n "$library" ] || { echo "the loader finds no $name for $worker" >&2; exit 1; }
  source=$work/$name.c
  # The worker's undefined functions, and variables, of which the linker has put a copy into the worker. 35 is
  # cudaErrorInsufficientDriver, which most functions may return; what the others return is given to these alone.
  awk -v error_string=cudaGetErrorString '
    { sub(/@.*/, "", $1) }
    NR == FNR { worker[$1] = $2; next }
    worker[$1] == "U" && $1 == error_string {
      text = "the installed PyTorch lacks the CUDA runtime of this worker: install PyTorch as PyPI has it"
      print "const char* " $1 "(int error) { return \"" text "\"; }"
      next
    }
    worker[$1] == "U" { print "long " $1 "(void) { return 35; }" }
    worker[$1] == "B" && $2 ~ /[BD]/ { print "long " $1 "[(0x" $4 " + 7) / 8];" }
  ' <(nm --dynamic --format=posix "$worker") <(nm --dynamic --defined-only --format=posix "$library") >"$source"
  # The version that the worker asks for is named as the library, and c10 has none.
  versions=()
  if [ "$name" != libc10_cuda.so ]; then
    echo "$name { global: *; };" >"$source.map"
    versions=("-Wl,--version-script=$source.map")
  fi
  gcc -shared -s -fPIC -Os "${versions[@]}" -Wl,-soname,"$name" -o "$directory/$name" "$source"
done
