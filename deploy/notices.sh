#!/usr/bin/env bash
# Prints the licenses of the third-party code that programs built on Debian carry: of each Debian package whose shared library
# they load or whose headers are compiled into them. deploy/wheel.sh puts the text into the wheel.
#
#   deploy/notices.sh PROGRAM...
set -euo pipefail
# These packages are headers only.
headers=(libcli11-dev librandom123-dev nlohmann-json3-dev)
# Every system that the wheel runs on has these libraries: auditwheel leaves them out.
system=(libc6 libgcc-s1 libstdc++6 zlib1g)

fail() { printf '[notices] error: %s\n' "$*" >&2; exit 1; }

declare -A libraries
for package in "${headers[@]}"; do libraries[$package]="headers, compiled into the programs"; done
# PyTorch's libraries are elsewhere. They come with PyTorch, and so do their licenses.
mapfile -t paths < <(ldd "$@" | sed -nE 's#.* => (/(usr/)?lib/[^ ]+) .*#\1#p' | sort -u)
mapfile -t files < <(readlink -f "${paths[@]}")
# dpkg may know a file by the name that it has without the link from /lib to /usr/lib.
declare -A package_of
while IFS=: read -r package _ file; do
  package_of[${file# }]=$package
done < <(dpkg-query --search "${files[@]}" "${files[@]#/usr}" 2>/dev/null)
for i in "${!paths[@]}"; do
  package=${package_of[${files[i]}]:-${package_of[${files[i]#/usr}]:-}}
  [ -n "$package" ] || fail "no Debian package has ${paths[i]}"
  [[ " ${system[*]} " =~ " $package " ]] || libraries[$package]+="${libraries[$package]:+, }$(basename "${paths[i]}")"
done
[ ${#libraries[@]} -gt ${#headers[@]} ] || fail "$* load no libraries of Debian"

mapfile -t packages < <(printf '%s\n' "${!libraries[@]}" | sort)
copyrights=()
for package in "${packages[@]}"; do
  file=/usr/share/doc/$package/copyright
  [ -s "$file" ] || fail "there is no $file"
  copyrights+=("$file")
  printf '\n===== %s %s (%s)\n\n' "$package" "$(dpkg-query -W -f '${Version}\n' "$package" | head -n 1)" "${libraries[$package]}"
  cat "$file"
done
# The texts that Debian's files refer to.
grep -ohE '/usr/share/common-licenses/[A-Za-z]+(-[0-9]+(\.[0-9]+)?)?' "${copyrights[@]}" | sort -u | while read -r file; do
  printf '\n===== %s\n\n' "$file"
  cat "$file"
done
