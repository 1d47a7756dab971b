// TLS of the server's edge, with the settings of gRPC's own TLS (1.2 and later, ALPN "h2").
#ifndef LENGTHWISE_SERVER_EDGE_TLS_H_
#define LENGTHWISE_SERVER_EDGE_TLS_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace lengthwise::server {

// Contents of PEM files. Without a certificate the port is plain text.
struct Encryption {
  std::string certificate;
  std::string key;
  // Authority that must have signed client certificates. Empty: clients are asked for none.
  std::string client_authority;

  friend bool operator==(const Encryption&, const Encryption&) = default;
};

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Ssl = std::unique_ptr<SSL, FreeSsl>;
using SslContext = std::unique_ptr<SSL_CTX, FreeSsl>;

// FAILED_PRECONDITION if OpenSSL rejects the certificate, key or authority. Handshakes succeed with
// any client certificate and without one: the caller checks SSL_get_verify_result and closes the
// connection if the authority has not signed its certificate.
absl::StatusOr<SslContext> CreateServerTls(const Encryption& encryption);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_TLS_H_
