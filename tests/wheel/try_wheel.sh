#!/usr/bin/env bash
# Builds the wheel of a built tree and tries it as a new user: in a fresh root of each release of
# Debian with python3-venv and no compiler, an unprivileged user installs it and runs the
# quickstart. Then the worker trains on emulated old processors. Prints the seconds of each step.
#
#   tests/wheel/try_wheel.sh [SUITE...]        bookworm (Debian 12) and trixie (Debian 13)
#
# Needs root, debootstrap, a network, and 7 GB for each release while it runs. If it cannot run,
# exits with 77 and the reason as its last line.
set -euo pipefail
cd "$(dirname "$0")/../.."
suites=("$@")
[ $# -gt 0 ] || suites=(bookworm trixie)

cannot() { echo "$*"; exit 77; }
[ "$(id -u)" = 0 ] || cannot "the wheel was not tested: only root can make a fresh root of Debian"
command -v debootstrap >/dev/null || cannot "the wheel was not tested: debootstrap is not installed"
command -v qemu-x86_64 >/dev/null || cannot "the wheel was not tested: qemu-user is not installed"
mirror=$(find /etc/apt -name '*.list' -o -name '*.sources' | sort | xargs cat |
  sed -nE 's#^(URIs:|deb( \[[^]]*\])?) (https?://[^ ]+/debian)/?( .*)?$#\3#p' | head -1)
[ -n "$mirror" ] || cannot "the wheel was not tested: apt has no source of Debian's packages here"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/lengthwise-wheel-XXXXXX")
mounted=()
clean() {
  for directory in "${mounted[@]}"; do umount --lazy "$directory" || true; done
  rm -rf --one-file-system "$work"
}
trap clean EXIT
fail() { printf 'failed: %s\n' "$*" >&2; exit 1; }

began=0
begin() { printf '%s: %s\n' "$suite" "$1"; began=$(date +%s%N); }
took() { printf '%s: took %s s\n' "$suite" "$((($(date +%s%N) - began) / 1000000000))"; }

deploy/wheel.sh "$work/dist"
wheel=$(basename "$work"/dist/*.whl)
[ "$(stat -c %s "$work/dist/$wheel")" -lt 40000000 ] || fail "$wheel is larger than 40 MB"

# Runs a command as the user in the root. Keeps only this shell's network settings.
as_user() {
  env --ignore-environment HOME=/home/ada LANG=C.UTF-8 PATH=/usr/bin:/bin "${network[@]}" "$(command -v chroot)" --userspec=ada:ada "$root" \
    /bin/sh -c 'cd ~ && exec "$@"' sh "$@"
}
mapfile -t network < <(env | grep -E '^(https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|SSL_CERT_FILE|PIP_(CERT|INDEX_URL|DEFAULT_TIMEOUT))=')

cat >"$work/tiny.yaml" <<'YAML'
name: tiny
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: sin_cos
learning_rates: 0.001
training: {steps: 20, batch_size: 16, lengths: {min: 1, max: 8}}
evaluation: {lengths: [4, 8, 12], sequences: 32}
YAML
# train_something WHERE: trains with the programs in the root, on this machine.
train_something() {
  "$site/lengthwise/_programs/bin/lengthwise" run "$work/tiny.yaml" --device cpu --workers 1 --data_dir "$work/$suite-$1" \
    >"$work/table" || { cat "$work/table"; fail "no training: $1"; }
  grep -q '^sin_cos ' "$work/table" || fail "no table: $1"
}

for suite in "${suites[@]}"; do
  root=$work/$suite
  begin "making a root with python3-venv"
  debootstrap --variant=minbase --include=python3-venv,ca-certificates "$suite" "$root" "$mirror" >"$work/log" 2>&1 ||
    { tail -5 "$work/log"; cannot "the wheel was not tested: debootstrap could not make $suite from $mirror"; }
  for directory in dev proc sys; do
    mount --rbind "/$directory" "$root/$directory" || cannot "the wheel was not tested: root may not mount here"
    mount --make-rslave "$root/$directory"
    mounted=("$root/$directory" "${mounted[@]}")
  done
  # Copies this machine's network configuration.
  cp --dereference --remove-destination /etc/resolv.conf /etc/hosts "$root/etc/"
  cp --dereference --remove-destination /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
  chroot "$root" useradd --create-home --shell /bin/sh ada
  [ ! -e "$root/usr/bin/gcc" ] || fail "there is a compiler in the root"
  cp "$work/dist/$wheel" "$root/home/ada/"
  took

  begin "pip install"
  as_user python3 -m venv lengthwise
  as_user lengthwise/bin/pip --disable-pip-version-check --quiet --no-cache-dir install "$wheel"
  took

  begin "lengthwise run quickstart"
  as_user lengthwise/bin/lengthwise run quickstart | tee "$work/table"
  took
  for encoding in sin_cos randomized_sin_cos; do
    grep -qE "^$encoding +│( +[0-9]+\.[0-9])+ │" "$work/table" || fail "the table has no line of $encoding"
  done

  begin "the rest of an installation"
  as_user lengthwise/bin/python - <<'PYTHON'
import lengthwise

with lengthwise.Client(data_dir=".local/share/lengthwise/runs") as client:
    accuracies = client.experiment("quickstart").results()
    assert len(accuracies) > 0, accuracies
    assert len(client.validate("latin_square/table1")) > 0
    assert len(client.experiment("quickstart").plot.accuracy_by_length().axes) == 1
PYTHON
  # docs/installing.md: the specifications as files.
  as_user sh -c 'cp -r lengthwise/lib/python3*/site-packages/lengthwise/_programs/share/lengthwise/experiments .'
  as_user lengthwise/bin/lengthwise validate experiments/quickstart.yaml
  # The Python half of the command line, and published values.
  as_user lengthwise/bin/lengthwise results quickstart --compare randomized_pe/table_1 \
    --data_dir .local/share/lengthwise/runs | grep -q "Table 1" || fail "no comparison with a published table"
  as_user lengthwise/bin/lengthwise --version
  as_user lengthwise/bin/lengthwise_server --version
  as_user lengthwise/bin/lengthwise_worker --version
  for file in share/man/man1/lengthwise-run.1 share/bash-completion/completions/lengthwise; do
    [ -s "$root/home/ada/lengthwise/$file" ] || fail "no $file"
  done
  for text in "===== libgrpc" "GNU LESSER GENERAL PUBLIC LICENSE"; do
    as_user sh -c 'grep -q "$1" lengthwise/lib/python3*/site-packages/lengthwise-*.dist-info/licenses/NOTICE' sh "$text" ||
      fail "the wheel's NOTICE lacks $text"
  done
  libraries=$(as_user sh -c 'ldd lengthwise/lib/python3*/site-packages/lengthwise/_programs/bin/lengthwise_worker')
  ! grep "not found" <<<"$libraries" || fail "the worker lacks libraries"
  # The libraries must be PyTorch's own: two OpenMP runtimes wait for each other's threads, and two
  # LibTorches are two sets of kernels.
  grep -q libtorch_cpu <<<"$libraries" || fail "the worker loads no LibTorch"
  ! grep -E "lib(torch|c10|cudart|gomp)[^ ]* =>" <<<"$libraries" | grep -vE "=> /home/ada/.*/(torch|nvidia)/" ||
    fail "the worker loads libraries in place of PyTorch's"
  took

  site=$(echo "$root"/home/ada/lengthwise/lib/python3*/site-packages)
  # x86-64-v2 exactly, and less than that: without SSE 4.2 and POPCNT.
  for processor in Nehalem Conroe; do
    begin "training on an emulated $processor"
    emulated="qemu-x86_64 -L $root -cpu $processor $site/lengthwise/_programs/bin"
    $emulated/lengthwise --version
    $emulated/lengthwise_server --version
    printf '#!/bin/sh\nexec %s "$@"\n' "$emulated/lengthwise_worker" >"$work/worker"
    chmod +x "$work/worker"
    LENGTHWISE_WORKER_BINARY=$work/worker train_something "$processor"
    took
  done

  if [ -d "$site/lengthwise/_programs/no_cuda" ]; then
    begin "training with a PyTorch that has no CUDA"
    # Like a CPU-only installation: without the CUDA libraries to which a worker with kernels is
    # linked.
    rm "$site"/torch/lib/libc10_cuda.so "$site"/nvidia/cu13/lib/libcudart.so.*
    train_something CPU
    took
  fi

  for directory in dev proc sys; do umount --lazy "$root/$directory"; done
  mounted=()
  rm -rf --one-file-system "$root"
done
