// Random numbers that nobody can guess, from OpenSSL's generator.
#ifndef LENGTHWISE_PLATFORM_RANDOM_H_
#define LENGTHWISE_PLATFORM_RANDOM_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace lengthwise::platform {

// `digits` lower-case hexadecimal digits, an even number. UNAVAILABLE: the operating system gives
// none.
absl::StatusOr<std::string> RandomHex(size_t digits);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_RANDOM_H_
