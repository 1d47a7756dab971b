// Cryptographically secure random numbers, from OpenSSL's generator.
#ifndef LENGTHWISE_PLATFORM_RANDOM_H_
#define LENGTHWISE_PLATFORM_RANDOM_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace lengthwise::platform {

// Returns `digits` random lower-case hexadecimal digits; `digits` is even. UNAVAILABLE if the
// operating system provides no randomness.
absl::StatusOr<std::string> RandomHex(size_t digits);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_RANDOM_H_
