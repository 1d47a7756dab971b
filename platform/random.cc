#include "platform/random.h"

#include <openssl/rand.h>

#include "absl/strings/escaping.h"

namespace lengthwise::platform {

absl::StatusOr<std::string> RandomHex(size_t digits) {
  std::string bytes(digits / 2, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    return absl::UnavailableError("the operating system provides no random numbers; try again");
  }
  return absl::BytesToHexString(bytes);
}

}  // namespace lengthwise::platform
