#include "rpc/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/status_macros.h"

namespace lengthwise::rpc {
namespace {

// Fails instead of prompting for the passphrase on the terminal.
int NoPassphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm fields = {};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return absl::InfinitePast();
  return absl::FromTM(fields, absl::UTCTimeZone());
}

std::string Shown(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

absl::Status NoPem(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, " holds no ", what, " in PEM, which begins with \"-----BEGIN ...\"; convert it"));
}

}  // namespace

std::vector<Certificate> CertificatesIn(absl::string_view pem) {
  const Bio bio = OpenPem(pem);
  bool asked = false;
  std::vector<Certificate> certificates;
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, &asked)) {
    certificates.emplace_back(one);
  }
  ERR_clear_error();  // the end of the text
  return certificates;
}

absl::StatusOr<std::string> ReadCertificate(const std::string& path, absl::Time now) {
  ASSIGN_OR_RETURN(std::string pem, platform::ReadFile(path));
  const std::vector<Certificate> certificates = CertificatesIn(pem);
  if (certificates.empty()) return NoPem(path, "certificate");
  const absl::Time begin = ToTime(X509_get0_notBefore(certificates[0].get()));
  const absl::Time end = ToTime(X509_get0_notAfter(certificates[0].get()));
  if (now > end) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate ", path, " expired at ", Shown(end), "; renew it"));
  }
  if (now < begin) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate ", path, " is valid from ", Shown(begin),
                     " on; wait until then, or correct this machine's clock"));
  }
  return pem;
}

absl::StatusOr<std::string> ReadPrivateKey(const std::string& path,
                                           absl::string_view certificate_pem) {
  ASSIGN_OR_RETURN(std::string pem, platform::ReadFile(path));
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return platform::FileError(errno, "read", path);
  if ((status.st_mode & 07) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "every user of this machine may read the key ", path, "; run `chmod 600 ", path, "`"));
  }
  const Bio bio = OpenPem(pem);
  bool asked = false;
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, &asked));
  ERR_clear_error();
  if (asked) {
    return absl::FailedPreconditionError(
        absl::StrCat("a passphrase protects the key ", path,
                     ", but programs cannot ask for it; remove it with `openssl pkey`"));
  }
  if (key == nullptr) return NoPem(path, "private key");
  const std::vector<Certificate> certificates = CertificatesIn(certificate_pem);
  if (certificates.empty() || X509_check_private_key(certificates[0].get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(absl::StrCat(
        "the key ", path, " belongs to another certificate; name the two of one pair"));
  }
  return pem;
}

absl::StatusOr<std::string> ReadAuthorities(const std::string& path) {
  ASSIGN_OR_RETURN(std::string pem, platform::ReadFile(path));
  if (CertificatesIn(pem).empty()) return NoPem(path, "certificate");
  return pem;
}

absl::Time FirstExpiry(absl::string_view pem) {
  absl::Time first = absl::InfiniteFuture();
  for (const Certificate& certificate : CertificatesIn(pem)) {
    first = std::min(first, ToTime(X509_get0_notAfter(certificate.get())));
  }
  return first;
}

std::string ExpiresSoon(absl::string_view subject, absl::string_view pem, absl::Time now) {
  const absl::Time expiry = FirstExpiry(pem);
  if (expiry - now >= absl::Hours(24 * 14)) return "";
  return absl::StrCat(subject, " expires at ", Shown(expiry));
}

}  // namespace lengthwise::rpc
