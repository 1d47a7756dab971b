#!/usr/bin/env bash
# Installs what building Lengthwise needs and is missing: Debian 12 packages and LibTorch; and makes the Python environment of
# the command line (deploy/python_environment.sh). Does nothing where all is there.
#
#   deploy/install.sh [more Debian packages]
#
# LibTorch is the Python package torch, in a virtual environment under ${XDG_CACHE_HOME:-~/.cache}/lengthwise; set
# LIBTORCH_ROOT to use another one (the folder that holds its include/ and lib/). What was found is written to
# user.bazelrc, which Bazel reads.
set -euo pipefail
cd "$(dirname "$0")/.."

TORCH_VERSION=2.11.0
# libtorch_cpu.so is linked against these two even where there is no GPU.
CUDA_RUNTIME="nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85"

say() { printf '[install] %s\n' "$*"; }
fail() { printf '[install] error: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    sudo "$@"
  else
    fail "packages are missing and this user is not root. Run this as root, then start again:
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  fi
}

command -v dpkg-query >/dev/null || fail "this is not a Debian system; deploy/packages.txt lists what is needed"
mapfile -t wanted < <(grep -vE '^(#|$)' deploy/packages.txt)
missing=()
for package in "${wanted[@]}" "$@"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${#missing[@]} Debian packages (about a minute): ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

cache="${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise"
libtorch="${LIBTORCH_ROOT:-}"
if [ -z "$libtorch" ]; then
  gpu=cpu
  if [ -e /dev/nvidiactl ]; then gpu=gpu; fi
  environment="$cache/torch-$TORCH_VERSION-$gpu"
  if [ ! -e "$environment/complete" ]; then
    say "installing LibTorch $TORCH_VERSION into $environment (about 530 MB to download; with a GPU 3 GB)"
    rm -rf "$environment"
    mkdir -p "$cache"
    /usr/bin/python3 -m venv "$environment"
    pip=("$environment/bin/pip" --disable-pip-version-check --quiet install)
    if [ "$gpu" = gpu ]; then
      "${pip[@]}" "torch==$TORCH_VERSION"
    else
      # shellcheck disable=SC2086  # two words on purpose
      "${pip[@]}" --no-deps "torch==$TORCH_VERSION" $CUDA_RUNTIME
    fi
    touch "$environment/complete"
  fi
  libtorch=$(echo "$environment"/lib/python3*/site-packages/torch)
fi
[ -e "$libtorch/lib/libtorch_cpu.so" ] || fail "no lib/libtorch_cpu.so in $libtorch; unset LIBTORCH_ROOT or correct it"

# The compiler and the libraries' versions are part of every action's key, so that a cached result is never one that other
# headers made.
toolchain=$({ dpkg-query -W -f '${Package} ${Version}\n' "${wanted[@]}"; g++ -dumpfullversion; echo "$libtorch"; } |
  sha256sum | cut -c1-16)
cat >user.bazelrc.new <<RC
# Written by deploy/install.sh.
build --repo_env=LIBTORCH_ROOT=$libtorch
build --action_env=LENGTHWISE_TOOLCHAIN=$toolchain
build --disk_cache=$cache/bazel
RC
if cmp -s user.bazelrc.new user.bazelrc; then rm user.bazelrc.new; else mv user.bazelrc.new user.bazelrc; fi

# Where the checkout is not complete yet (deploy/Containerfile), it is made later.
[ ! -e python/requirements.txt ] || deploy/python_environment.sh

command -v nvcc >/dev/null || say "no nvcc on the PATH: CUDA kernels are left out of the build"
say "ready: LibTorch in $libtorch"
