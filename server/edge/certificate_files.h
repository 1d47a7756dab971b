// The files of a TLS port's certificates, which may be replaced while the server runs.
#ifndef LENGTHWISE_SERVER_EDGE_CERTIFICATE_FILES_H_
#define LENGTHWISE_SERVER_EDGE_CERTIFICATE_FILES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "server/edge/tls.h"

namespace lengthwise::server {

// Thread-safe.
class CertificateFiles {
 public:
  struct Paths {
    std::string certificate;
    std::string key;
    std::string client_authority;  // empty: none
  };
  // Of what is in force. absl::InfiniteFuture(): there is no such certificate.
  struct Expiries {
    absl::Time server = absl::InfiniteFuture();
    absl::Time client_authority = absl::InfiniteFuture();
  };

  // Reads the files, and logs a warning if a certificate expires soon. Errors are those of
  // rpc/certificates.h. Only tests pass `now`.
  static absl::StatusOr<std::unique_ptr<CertificateFiles>> Open(
      Paths paths, std::function<absl::Time()> now = absl::Now);

  // What is in force.
  Encryption encryption() const;
  Expiries expiries() const;
  // False after a Refresh that could not use the files.
  bool usable() const;

  // Reads the files again. If they have changed, `use` puts them into force, or returns why they
  // cannot be used. What cannot be read or used stays out of force, with a warning in the log.
  void Refresh(const std::function<absl::Status(const Encryption&)>& use);

 private:
  CertificateFiles(Paths paths, std::function<absl::Time()> now)
      : paths_(std::move(paths)), now_(std::move(now)) {}
  absl::StatusOr<Encryption> Read() const;
  void WarnOfExpiry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Paths paths_;
  const std::function<absl::Time()> now_;
  mutable platform::Mutex mutex_;
  Encryption in_force_ ABSL_GUARDED_BY(mutex_);
  absl::Status refreshed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_CERTIFICATE_FILES_H_
