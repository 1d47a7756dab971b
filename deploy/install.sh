#!/usr/bin/env bash
# Installs what building Lengthwise needs and is missing: Debian packages (of Debian 12 or 13) and LibTorch. Makes the Python
# environment of the command line (deploy/python_environment.sh). Does nothing where all is there.
#
#   deploy/install.sh [--strict] [more Debian packages]
#
# --strict: warnings of the compiler are errors in this checkout from now on, also when the script is called without it
# later. To go back, delete user.bazelrc and call it again.
#
# LibTorch is the Python package torch, checked by its hash, in a virtual environment under
# ${XDG_CACHE_HOME:-~/.cache}/lengthwise; set LIBTORCH_ROOT to use another one (the folder that holds its include/ and lib/).
# LENGTHWISE_TORCH=gpu or =cpu chooses the one with or without CUDA; by default a machine with an NVIDIA driver gets CUDA's.
# Writes the detected paths to user.bazelrc, which Bazel reads.
set -euo pipefail
strict=no
more=()
for argument in "$@"; do
  case $argument in
    --strict) strict=yes ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) echo "unknown flag $argument; see deploy/install.sh --help" >&2; exit 2 ;;
    *) more+=("$argument") ;;
  esac
done
# Relative to the caller's directory.
libtorch=${LIBTORCH_ROOT:+$(realpath -ms "$LIBTORCH_ROOT")}
cd "$(dirname "$0")/.."

STRICT_MARK="# Warnings are errors here."
! grep -qsxF "$STRICT_MARK" user.bazelrc || strict=yes

TORCH_VERSION=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' deploy/torch_cpu.txt)

say() { printf '[install] %s\n' "$*"; }
fail() { printf '[install] error: %s\n' "$*" >&2; exit 1; }

WHEEL='Or build nothing: the wheel of a release needs neither root nor these packages (docs/installing.md).'

# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
cache=${XDG_CACHE_HOME:-${HOME:?is not set; set it or XDG_CACHE_HOME}/.cache}/lengthwise
[[ $cache$libtorch != *[[:space:]]* ]] ||
  fail "the path ${libtorch:-$cache} has a space, which Bazel's options cannot take; set LIBTORCH_ROOT or XDG_CACHE_HOME to another"

case ${LENGTHWISE_TORCH:-} in "" | cpu | gpu) ;; *) fail "LENGTHWISE_TORCH is $LENGTHWISE_TORCH; accepted: cpu, gpu" ;; esac

command -v dpkg-query >/dev/null || fail "this is not a Debian system; deploy/packages.txt lists what is needed.
$WHEEL"
mapfile -t wanted < <(grep -vE '^(#|$)' deploy/packages.txt)
missing=()
for package in "${wanted[@]}" "${more[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; } ||
      fail "${#missing[@]} Debian packages are missing, and only root can install them. Ask the administrator of $(hostname) for:
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}
Then start this script again: everything else goes into your home, and needs no root.
$WHEEL"
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} Debian packages (about a minute): ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ -z "$libtorch" ]; then
  gpu=${LENGTHWISE_TORCH:-$([ -e /dev/nvidiactl ] && echo gpu || echo cpu)}
  environment="$cache/torch-$TORCH_VERSION-$gpu"
  if [ ! -e "$environment/complete" ]; then
    python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [[ $python = 3.11 || $python = 3.13 ]] || fail "the packages' hashes are those for Python 3.11 and 3.13 (Debian 12 and 13), and this
is $python. Set LIBTORCH_ROOT to a LibTorch $TORCH_VERSION of your own (of pip: site-packages/torch), then start this script again."
    say "installing LibTorch $TORCH_VERSION into $environment (about 530 MB to download; with a GPU 3 GB)"
    rm -rf "$environment"
    mkdir -p "$cache"
    /usr/bin/python3 -m venv "$environment"
    # The files name all that is needed, each with its hash (deploy/pin_requirements.py).
    "$environment/bin/pip" --disable-pip-version-check --quiet install --no-deps --require-hashes \
      --requirement "deploy/torch_$gpu.txt"
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
$(if [ $strict = yes ]; then echo "$STRICT_MARK"; else echo "build --config=lenient"; fi)
RC
if cmp -s user.bazelrc.new user.bazelrc; then rm user.bazelrc.new; else mv user.bazelrc.new user.bazelrc; fi

# If the checkout is not complete yet (deploy/Containerfile), the environment is made later.
[ ! -e python/requirements.txt ] || deploy/python_environment.sh

# The places in which bazel/cuda.bzl looks.
[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] || [ -x /usr/local/cuda/bin/nvcc ] || command -v nvcc >/dev/null ||
  say "no nvcc in \$CUDA_HOME/bin, on the PATH or in /usr/local/cuda/bin: CUDA kernels are left out of the build"
say "ready: LibTorch in $libtorch"
