#include "server/edge/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "platform/status_macros.h"
#include "rpc/certificates.h"

namespace lengthwise::server {
namespace {

absl::Status Unusable(absl::string_view what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  ERR_clear_error();
  return absl::FailedPreconditionError(absl::StrCat("the ", what, " cannot be used: ", text));
}

absl::Status UseCertificate(const Encryption& encryption, SSL_CTX* context) {
  const std::vector<rpc::Certificate> chain = rpc::CertificatesIn(encryption.certificate);
  if (chain.empty() || SSL_CTX_use_certificate(context, chain[0].get()) != 1) {
    return Unusable("TLS certificate");
  }
  for (size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context, chain[i].get());
  const rpc::Bio pem = rpc::OpenPem(encryption.key);
  const rpc::Key key(PEM_read_bio_PrivateKey(pem.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Unusable("TLS key");
  }
  return absl::OkStatus();
}

absl::Status AskForCertificates(const std::string& authority, SSL_CTX* context) {
  const std::vector<rpc::Certificate> authorities = rpc::CertificatesIn(authority);
  bool is_usable = !authorities.empty();
  for (const rpc::Certificate& one : authorities) {
    is_usable = is_usable && SSL_CTX_add_client_CA(context, one.get()) == 1 &&
                X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()) == 1;
  }
  if (!is_usable) return Unusable("TLS client authority");
  // The edge closes a connection with a bad certificate after the handshake, without an alert:
  // gRPC clients treat an alert as an unreachable server and retry for ever (rpc/channel.cc).
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  return absl::OkStatus();
}

int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_size, kHttp2, sizeof(kHttp2), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

absl::StatusOr<SslContext> CreateServerTls(const Encryption& encryption) {
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return Unusable("TLS library");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Cipher suites of TLS 1.2. All suites of 1.3 are acceptable.
  SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // Otherwise one SSL_read would not return while a client sends KeyUpdates without end.
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  // No session resumption, so that each connection shows its certificate.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_alpn_select_cb(context.get(), ChooseHttp2, nullptr);
  RETURN_IF_ERROR(UseCertificate(encryption, context.get()));
  if (!encryption.client_authority.empty()) {
    RETURN_IF_ERROR(AskForCertificates(encryption.client_authority, context.get()));
  }
  return context;
}

}  // namespace lengthwise::server
