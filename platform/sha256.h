// SHA-256 (FIPS 180-4) of bytes that come in pieces, from OpenSSL.
#ifndef LENGTHWISE_PLATFORM_SHA256_H_
#define LENGTHWISE_PLATFORM_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace lengthwise::platform {

// Not thread-safe.
class Sha256 {
 public:
  Sha256();
  void Update(absl::string_view data);
  // 64 lower-case hexadecimal digits. Called once, last.
  std::string Finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string Sha256Hex(absl::string_view data);

// HMAC-SHA-256 (RFC 2104): who does not know the key cannot make it. 64 hexadecimal digits.
std::string HmacSha256Hex(absl::string_view key, absl::string_view data);

// True for what Finish() can return.
bool IsSha256Hex(absl::string_view text);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_SHA256_H_
