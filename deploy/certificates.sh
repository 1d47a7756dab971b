#!/usr/bin/env bash
# Makes certificates in the current directory to try TLS with: an authority (house-ca), a server at 127.0.0.1 (server) and a
# worker (gpus). They expire after a day. Files of these names are not replaced.
#
#   deploy/certificates.sh
set -euo pipefail
for name in house-ca server gpus; do
  for file in "$name.key" "$name.pem"; do
    [ ! -e "$file" ] || { echo "$PWD/$file exists; move it away, or run this in another directory" >&2; exit 1; }
  done
done
new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "$@"; }
new -x509 -days 1 -keyout house-ca.key -out house-ca.pem -subj /CN=house
for name in server gpus; do
  new -keyout "$name.key" -out "$name.csr" -subj "/CN=$name" -addext subjectAltName=IP:127.0.0.1
  openssl x509 -req -in "$name.csr" -CA house-ca.pem -CAkey house-ca.key -CAcreateserial -days 1 -copy_extensions copy \
    -out "$name.pem" 2>&1
done
chmod 600 house-ca.key server.key gpus.key
