// Numbers of things in sentences.
#ifndef LENGTHWISE_PLATFORM_COUNTED_H_
#define LENGTHWISE_PLATFORM_COUNTED_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// "1,234,567".
std::string FormatCount(int64_t value);

// "1 trial", "1,204 trials"; Counted(1, "map is", "maps are") is "1 map is". `many` defaults to
// `one` with an "s".
std::string Counted(int64_t count, absl::string_view one, absl::string_view many = "");

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_COUNTED_H_
