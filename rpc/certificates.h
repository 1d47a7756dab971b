// Certificates and keys in PEM files, checked before gRPC gets them: its own errors name neither
// the file nor the reason.
#ifndef LENGTHWISE_RPC_CERTIFICATES_H_
#define LENGTHWISE_RPC_CERTIFICATES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::rpc {

// All return the file's content. Errors name the file and say what to do: those of
// platform/files.h, and INVALID_ARGUMENT for what is not in PEM.

// A certificate, and perhaps the chain that it needs after it. FAILED_PRECONDITION where its time
// is over or has not come at `now`.
absl::StatusOr<std::string> ReadCertificate(const std::string& path, absl::Time now);

// The private key of a certificate that was read. FAILED_PRECONDITION where it is another's, where
// every user of the machine may read it, and where a passphrase protects it.
absl::StatusOr<std::string> ReadPrivateKey(const std::string& path,
                                           absl::string_view certificate_pem);

// The certificates of authorities, one or more.
absl::StatusOr<std::string> ReadAuthorities(const std::string& path);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_CERTIFICATES_H_
