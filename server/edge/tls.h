// TLS of the server's edge: the settings that gRPC's own TLS has (1.2 and later, ALPN "h2").
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
  // Certificates that clients show are checked against this authority; empty: none is asked for.
  std::string client_authority;
};

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Ssl = std::unique_ptr<SSL, FreeSsl>;
using SslContext = std::unique_ptr<SSL_CTX, FreeSsl>;

// FAILED_PRECONDITION for what OpenSSL does not accept. Handshakes succeed with any certificate of
// the client's and without one: the caller asks SSL_get_verify_result, and lets no connection live
// whose certificate the authority has not signed.
absl::StatusOr<SslContext> CreateServerTls(const Encryption& encryption);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_TLS_H_
