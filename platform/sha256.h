// Incremental SHA-256 (FIPS 180-4) and HMAC, from OpenSSL.
#ifndef LENGTHWISE_PLATFORM_SHA256_H_
#define LENGTHWISE_PLATFORM_SHA256_H_

#include <cstddef>
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
  // Returns the hash, 64 lower-case hexadecimal digits. Call it once, last.
  std::string Finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string Sha256Hex(absl::string_view data);

// Returns the HMAC-SHA-256 (RFC 2104), 64 hexadecimal digits. It cannot be forged without the key.
std::string HmacSha256Hex(absl::string_view key, absl::string_view data);

// Returns true if `text` is `digits` lower-case hexadecimal digits.
bool IsHex(absl::string_view text, size_t digits);

// Returns true if `text` has the form of Finish()'s result.
bool IsSha256Hex(absl::string_view text);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_SHA256_H_
