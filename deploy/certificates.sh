#!/usr/bin/env bash
# Makes certificates in the current directory to try TLS with: an authority (house-ca), a server at 127.0.0.1 (server) and a
# worker (gpus). They expire after a day.
#
#   deploy/certificates.sh
set -euo pipefail
new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "$@"; }
new -x509 -keyout house-ca.key -out house-ca.pem -subj /CN=house
for name in server gpus; do
  new -keyout "$name.key" -out "$name.csr" -subj "/CN=$name" -addext subjectAltName=IP:127.0.0.1
  openssl x509 -req -in "$name.csr" -CA house-ca.pem -CAkey house-ca.key -CAcreateserial -days 1 -copy_extensions copy \
    -out "$name.pem" 2>&1
done
chmod 600 ./*.key
