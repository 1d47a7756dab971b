#!/usr/bin/env bash
# Copies the built programs, and the libraries that they load and no package of Debian brings (LibTorch and CUDA's), into a
# folder that can be laid over a Debian 12. usr/local/share/lengthwise/packages in it names the packages that bring the others.
#
#   deploy/collect.sh DIR [BIN]
#
# BIN is where Bazel puts programs: bazel-bin. The programs look for these libraries in ../lib/lengthwise beside them, before
# the place that they were built with (bazel/libtorch.bzl), so that no other program of the machine gets to see them. The
# Python environment of deploy/python_environment.sh goes there, too, where there is one.
set -euo pipefail
# Other users read what is copied to their machine's /usr/local.
umask 022
target=$(realpath -m "${1:?usage: deploy/collect.sh DIR [BIN]}")
bin=$(realpath -m "${2:-$(dirname "$0")/../bazel-bin}")

programs=("$bin/server/lengthwise_server" "$bin/worker/lengthwise_worker" "$bin/client/lengthwise")
libraries=$target/usr/local/lib/lengthwise
for program in "${programs[@]}"; do
  [ -x "$program" ] || { echo "$program is missing: build it first" >&2; exit 1; }
done
# Those of an older collection.
rm -rf "$libraries"
mkdir -p "$target/usr/local/bin" "$libraries" "$target/usr/local/share/lengthwise"
for program in "${programs[@]}"; do
  install -m 755 "$program" "$target/usr/local/bin/"
done

loaded=("${programs[@]}")
# A worker loads it where there is a GPU, if all that it loads in turn is installed.
cuda=$(ldd "${programs[1]}" | sed -n 's/.* => \(\/.*\)\/libtorch_cpu\.so .*/\1/p')/libtorch_cuda.so
if [ ! -e "$cuda" ] || [[ $(ldd "$cuda") == *'not found'* ]]; then cuda=; fi
[ -z "$cuda" ] || loaded+=("$cuda")
mapfile -t files < <(ldd "${loaded[@]}" | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p' | sort -u)
# Debian's, by path. dpkg may know one by the name that it has without the link from /lib to /usr/lib.
declare -A package_of
while IFS=: read -r package _ path; do
  package_of[${path# }]=$package
done < <(dpkg-query --search "${files[@]}" "${files[@]#/usr}" "${files[@]/#//usr}" 2>/dev/null)
packages=()
for library in "${files[@]}"; do
  package=${package_of[$library]:-${package_of[${library#/usr}]:-${package_of[/usr$library]:-}}}
  if [ -n "$package" ]; then
    packages+=("$package")
  else
    install -m 644 "$(readlink -f "$library")" "$libraries/$(basename "$library")"
    # CUDA's libraries load others of their own folder by name.
    case $cuda:$library in
      /*:*/nvidia/*) find "$(dirname "$library")" -name '*.so*' -type f -exec install -m 644 -t "$libraries" {} + ;;
    esac
  fi
done
[ -z "$cuda" ] || install -m 644 "$cuda" "$libraries/"
# Loaded where checkpoints are in an object store.
mapfile -t -O ${#packages[@]} packages < <(dpkg-query --search '*/libcurl.so.4' | sed 's/:.*//' | sort -u)
# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
environment=${XDG_CACHE_HOME:-${HOME:-}/.cache}/lengthwise/python
if [ -x "$environment/bin/python" ]; then
  # It starts with -m, so that the paths in its scripts do not matter.
  cp -a "$environment" "$libraries/python"
  chmod -R a+rX "$libraries/python"
  packages+=(python3)
else
  echo "no Python environment in $environment (deploy/python_environment.sh makes it): comparisons are left out" >&2
fi
printf '%s\n' "${packages[@]}" | sort -u >"$target/usr/local/share/lengthwise/packages"
du -sh "$target" | sed 's/\t.*/ collected/'
