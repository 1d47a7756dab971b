#!/usr/bin/env bash
# Runs a command with an S3-compatible object store: OpenStack Swift with its s3api, on loopback, from PyPI.
#
#   tests/object_store/with_store.sh COMMAND...
#
# The command finds the store in LENGTHWISE_TEST_S3. Without network access to install Swift, it runs without that variable, and the
# tests that need a store are skipped. Swift compares checksums, keeps If-None-Match and refuses expired URLs, as Amazon S3 does.
set -euo pipefail
# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
tools=${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise/swift
# Free ports, so that two runs on a machine do not share a store.
read -r -a ports < <(/usr/bin/python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*(s.getsockname()[1] for s in sockets))')
port=${ports[0]}

install_swift() {
  [ -x "$tools/bin/swift-proxy-server" ] && return
  rm -rf "$tools"
  /usr/bin/python3 -m venv "$tools" &&
    "$tools/bin/pip" --disable-pip-version-check --quiet install --no-deps --require-hashes --requirement "$(dirname "$0")/requirements.txt" || {
    rm -rf "$tools"
    return 1
  }
}
if ! install_swift; then
  echo "cannot install Swift into $tools: the tests of object stores will be skipped" >&2
  exec "$@"
fi

store=$(mktemp -d)
pids=()
stop() {
  [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$store"
}
trap stop EXIT
mkdir -p "$store/disk/d1" "$store/cache"
cat >"$store/swift.conf" <<EOF
[swift-hash]
swift_hash_path_prefix = test
swift_hash_path_suffix = test
[storage-policy:0]
name = only
default = yes
EOF
common="swift_dir = $store
user = $(id -un)
workers = 0
bind_ip = 127.0.0.1
log_level = ERROR
recon_cache_path = $store/cache"
number=0
for kind in object container account; do
  number=$((number + 1))
  (
    cd "$store"
    "$tools/bin/swift-ring-builder" $kind.builder create 4 1 1
    "$tools/bin/swift-ring-builder" $kind.builder add "r1z1-127.0.0.1:${ports[number]}/d1" 1
    "$tools/bin/swift-ring-builder" $kind.builder rebalance
  ) >"$store/$kind.rings" 2>&1 || true # it warns of a ring without replicas by its exit status
  cat >"$store/$kind.conf" <<EOF
[DEFAULT]
$common
bind_port = ${ports[number]}
devices = $store/disk
mount_check = false
[pipeline:main]
pipeline = $kind-server
[app:$kind-server]
use = egg:swift#$kind
allow_versions = true
EOF
  "$tools/bin/swift-$kind-server" "$store/$kind.conf" >"$store/$kind.log" 2>&1 &
  pids+=($!)
done
cat >"$store/proxy.conf" <<EOF
[DEFAULT]
$common
bind_port = $port
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:cache]
paste.filter_factory = memory_cache:filter_factory
EOF
for filter in catch_errors gatekeeper healthcheck listing_formats copy slo dlo; do
  printf '[filter:%s]\nuse = egg:swift#%s\n' $filter $filter >>"$store/proxy.conf"
done
PYTHONPATH=$(cd "$(dirname "$0")" && pwd) "$tools/bin/swift-proxy-server" "$store/proxy.conf" >"$store/proxy.log" 2>&1 &
pids+=($!)
for ((tries = 0; ; ++tries)); do
  [ "$(curl --silent --max-time 2 "http://127.0.0.1:$port/healthcheck")" != OK ] || break
  if [ $tries = 300 ]; then
    echo "Swift did not start within 30 s: the tests of object stores will be skipped. Its log:" >&2
    tail -n 5 "$store"/*.log >&2
    unset LENGTHWISE_TEST_S3
    "$@"
    exit
  fi
  sleep 0.1
done
export LENGTHWISE_TEST_S3="http://127.0.0.1:$port test:tester testing"
"$@"
