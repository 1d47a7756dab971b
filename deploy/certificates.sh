# Certificates as a house has them, for a day: an authority, a server at 127.0.0.1 and a worker.
set -euo pipefail
new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "$@"; }
new -x509 -keyout house-ca.key -out house-ca.pem -subj /CN=house
for name in server gpus; do
  new -keyout "$name.key" -out "$name.csr" -subj "/CN=$name" -addext subjectAltName=IP:127.0.0.1
  openssl x509 -req -in "$name.csr" -CA house-ca.pem -CAkey house-ca.key -CAcreateserial -days 1 -copy_extensions copy \
    -out "$name.pem" 2>&1
done
chmod 600 ./*.key
