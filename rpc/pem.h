// Owning pointers for the objects that OpenSSL reads from PEM.
#ifndef LENGTHWISE_RPC_PEM_H_
#define LENGTHWISE_RPC_PEM_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/string_view.h"

namespace lengthwise::rpc {

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreePem>;
using Certificate = std::unique_ptr<X509, FreePem>;
using Key = std::unique_ptr<EVP_PKEY, FreePem>;

// Reads `pem`, which must outlive the result.
inline Bio OpenPem(absl::string_view pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_PEM_H_
