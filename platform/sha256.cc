#include "platform/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"

namespace lengthwise::platform {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256::Update(absl::string_view data) {
  EVP_DigestUpdate(context_.get(), data.data(), data.size());
}

std::string Sha256::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

std::string Sha256Hex(absl::string_view data) {
  Sha256 hash;
  hash.Update(data);
  return hash.Finish();
}

std::string HmacSha256Hex(absl::string_view key, absl::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> code;
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(data.data()), data.size(), code.data(), &size);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(code.data()), size));
}

bool IsHex(absl::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool IsSha256Hex(absl::string_view text) { return IsHex(text, 64); }

}  // namespace lengthwise::platform
