// Reads and validates certificates and keys in PEM files. gRPC's own errors name neither the file
// nor the reason, so the files are checked before gRPC gets them.
#ifndef LENGTHWISE_RPC_CERTIFICATES_H_
#define LENGTHWISE_RPC_CERTIFICATES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::rpc {

// These functions return the file's content. Errors name the file and the remedy: those of
// platform/files.h, and INVALID_ARGUMENT if the file is not PEM.

// Reads a certificate, optionally followed by its chain. FAILED_PRECONDITION if it is expired or
// not yet valid at `now`.
absl::StatusOr<std::string> ReadCertificate(const std::string& path, absl::Time now);

// Reads the private key of a certificate. FAILED_PRECONDITION if it does not match the certificate,
// is readable by every user of the machine, or has a passphrase.
absl::StatusOr<std::string> ReadPrivateKey(const std::string& path,
                                           absl::string_view certificate_pem);

// Reads the certificates of one or more authorities.
absl::StatusOr<std::string> ReadAuthorities(const std::string& path);

// When the first of the certificates in `pem` expires; absl::InfiniteFuture() if there is none.
absl::Time FirstExpiry(absl::string_view pem);

// Returns "{subject} expires at {time}" if one of the certificates in `pem` expires within two
// weeks after `now`, so that an operator has time to replace it; else an empty text.
std::string ExpiresSoon(absl::string_view subject, absl::string_view pem, absl::Time now);

// Owning pointers for the objects that OpenSSL reads from PEM, and for streams.
struct FreePem {
  // A stream of TLS also owns a reference to its socket's.
  void operator()(BIO* bio) const { BIO_free_all(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreePem>;
using Certificate = std::unique_ptr<X509, FreePem>;
using Key = std::unique_ptr<EVP_PKEY, FreePem>;

// Returns the certificates in `pem`; none if it is not PEM.
std::vector<Certificate> CertificatesIn(absl::string_view pem);

// Reads `pem`, which must outlive the result.
inline Bio OpenPem(absl::string_view pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_CERTIFICATES_H_
