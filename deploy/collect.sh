#!/usr/bin/env bash
# Copies the built programs and every library that they load, but for the C library's, into a folder that can be laid over a
# Debian 12.
#
#   deploy/collect.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:?usage: deploy/collect.sh DIR}
mkdir -p "$target/usr/local/bin" "$target/usr/local/lib/lengthwise" "$target/etc/ld.so.conf.d"
programs=(bazel-bin/server/lengthwise_server bazel-bin/worker/lengthwise_worker bazel-bin/client/lengthwise)
for program in "${programs[@]}"; do
  [ -x "$program" ] || { echo "$program is missing: build it first" >&2; exit 1; }
  install -m 755 "$program" "$target/usr/local/bin/"
done
# Of the C library and the loader, the machine has its own.
ldd "${programs[@]}" | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' |
  while read -r library; do install -m 644 "$(readlink -f "$library")" "$target/usr/local/lib/lengthwise/$(basename "$library")"; done
echo /usr/local/lib/lengthwise >"$target/etc/ld.so.conf.d/lengthwise.conf"
du -sh "$target" | sed 's/\t.*/ collected/'
