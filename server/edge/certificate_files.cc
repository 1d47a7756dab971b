#include "server/edge/certificate_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "rpc/certificates.h"

namespace lengthwise::server {

absl::StatusOr<std::unique_ptr<CertificateFiles>> CertificateFiles::Open(
    Paths paths, std::function<absl::Time()> now) {
  std::unique_ptr<CertificateFiles> files(new CertificateFiles(std::move(paths), std::move(now)));
  const platform::MutexLock lock(files->mutex_);
  ASSIGN_OR_RETURN(files->in_force_, files->Read());
  files->WarnOfExpiry();
  return files;
}

Encryption CertificateFiles::encryption() const {
  const platform::MutexLock lock(mutex_);
  return in_force_;
}

CertificateFiles::Expiries CertificateFiles::expiries() const {
  const platform::MutexLock lock(mutex_);
  return {.server = rpc::FirstExpiry(in_force_.certificate),
          .client_authority = rpc::FirstExpiry(in_force_.client_authority)};
}

bool CertificateFiles::usable() const {
  const platform::MutexLock lock(mutex_);
  return refreshed_.ok();
}

void CertificateFiles::Refresh(const std::function<absl::Status(const Encryption&)>& use) {
  const platform::MutexLock lock(mutex_);
  absl::StatusOr<Encryption> read = Read();
  absl::Status status = read.status();
  const bool changed = read.ok() && *read != in_force_;
  if (changed) status = use(*read);
  if (changed && status.ok()) {
    in_force_ = *std::move(read);
    platform::LogInfo("new connections use the new certificate ", paths_.certificate);
    WarnOfExpiry();
  }
  // Once, and not at every interval.
  if (!status.ok() && status != refreshed_) {
    platform::LogWarning("the new certificates cannot be used, so the old ones stay: ",
                         status.message());
  }
  refreshed_ = std::move(status);
}

absl::StatusOr<Encryption> CertificateFiles::Read() const {
  Encryption encryption;
  ASSIGN_OR_RETURN(encryption.certificate, rpc::ReadCertificate(paths_.certificate, now_()));
  ASSIGN_OR_RETURN(encryption.key, rpc::ReadPrivateKey(paths_.key, encryption.certificate));
  if (!paths_.client_authority.empty()) {
    ASSIGN_OR_RETURN(encryption.client_authority, rpc::ReadAuthorities(paths_.client_authority));
  }
  return encryption;
}

void CertificateFiles::WarnOfExpiry() {
  const auto warn = [this](const std::string& path, const std::string& pem) {
    const std::string soon = rpc::ExpiresSoon(absl::StrCat("the certificate ", path), pem, now_());
    if (soon.empty()) return;
    platform::LogWarning(soon,
                         "; replace the file: the server reads the new one without a restart");
  };
  warn(paths_.certificate, in_force_.certificate);
  warn(paths_.client_authority, in_force_.client_authority);
}

}  // namespace lengthwise::server
