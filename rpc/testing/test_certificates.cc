#include "rpc/testing/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace lengthwise::rpc {
namespace {

// Checks the result of an OpenSSL function that returns 1 or a pointer on success.
template <typename T>
T Checked(T result) {
  if (!result) {
    std::fprintf(stderr, "OpenSSL cannot make a certificate\n");
    std::abort();
  }
  return result;
}

void Extend(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = Checked(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  Checked(X509_add_ext(certificate, extension, -1));
  X509_EXTENSION_free(extension);
}

void Write(const std::string& path, BIO* content, mode_t mode) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(content, &data);
  std::ofstream(path, std::ios::binary).write(data, size);
  chmod(path.c_str(), mode);
  BIO_free(content);
}

void WriteCertificate(const std::string& path, X509* certificate) {
  BIO* pem = Checked(BIO_new(BIO_s_mem()));
  Checked(PEM_write_bio_X509(pem, certificate));
  Write(path, pem, 0644);
}

// Returns an unsigned certificate with a new key.
X509* NewCertificate(const std::string& name, EVP_PKEY* key, long end_seconds) {
  static long serial = 1;
  X509* certificate = Checked(X509_new());
  Checked(X509_set_version(certificate, 2));
  Checked(ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++));
  Checked(X509_gmtime_adj(X509_getm_notBefore(certificate), -3600));
  Checked(X509_gmtime_adj(X509_getm_notAfter(certificate), end_seconds));
  Checked(X509_set_pubkey(certificate, key));
  Checked(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                     reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                     0));
  return certificate;
}

}  // namespace

struct TestAuthority::Keys {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
};

TestAuthority::TestAuthority(std::string directory, const std::string& name)
    : directory_(std::move(directory)),
      name_(name),
      ca_(absl::StrCat(directory_, "/", name, "-ca.pem")),
      keys_(std::make_unique<Keys>()) {
  keys_->key = Checked(EVP_EC_gen("P-256"));
  X509* certificate = NewCertificate(name, keys_->key, long{3600} * 24);
  keys_->certificate = certificate;
  Checked(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)));
  Extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  Extend(certificate, certificate, NID_subject_key_identifier, "hash");
  Checked(X509_sign(certificate, keys_->key, EVP_sha256()));
  WriteCertificate(ca_, certificate);
}

TestAuthority::~TestAuthority() {
  X509_free(keys_->certificate);
  EVP_PKEY_free(keys_->key);
}

TestAuthority::Pair TestAuthority::Issue(const std::string& name, absl::Duration lifetime) {
  EVP_PKEY* key = Checked(EVP_EC_gen("P-256"));
  X509* certificate = NewCertificate(name, key, static_cast<long>(absl::ToInt64Seconds(lifetime)));
  Checked(X509_set_issuer_name(certificate, X509_get_subject_name(keys_->certificate)));
  Extend(certificate, keys_->certificate, NID_basic_constraints, "CA:FALSE");
  Extend(certificate, keys_->certificate, NID_ext_key_usage, "serverAuth,clientAuth");
  Extend(certificate, keys_->certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  Checked(X509_sign(certificate, keys_->key, EVP_sha256()));
  Pair pair = {absl::StrCat(directory_, "/", name_, "-", name, ".pem"),
               absl::StrCat(directory_, "/", name_, "-", name, ".key")};
  WriteCertificate(pair.certificate, certificate);
  BIO* pem = Checked(BIO_new(BIO_s_mem()));
  Checked(PEM_write_bio_PrivateKey(pem, key, nullptr, nullptr, 0, nullptr, nullptr));
  Write(pair.key, pem, 0600);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pair;
}

}  // namespace lengthwise::rpc
