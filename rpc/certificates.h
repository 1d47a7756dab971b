// Reads and validates certificates and keys in PEM files. gRPC's own errors name neither the file
// nor the reason, so the files are checked before gRPC gets them.
#ifndef LENGTHWISE_RPC_CERTIFICATES_H_
#define LENGTHWISE_RPC_CERTIFICATES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::rpc {

// All functions return the file's content. Errors name the file and the remedy: those of
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

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_CERTIFICATES_H_
