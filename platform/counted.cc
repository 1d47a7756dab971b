#include "platform/counted.h"

#include "absl/strings/str_cat.h"

namespace lengthwise::platform {

std::string FormatCount(int64_t value) {
  const std::string digits = absl::StrCat(value);
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') result += ',';
    result += digits[i];
  }
  return result;
}

std::string Counted(int64_t count, absl::string_view one, absl::string_view many) {
  if (count == 1 || many.empty()) {
    return absl::StrCat(FormatCount(count), " ", one, count == 1 ? "" : "s");
  }
  return absl::StrCat(FormatCount(count), " ", many);
}

}  // namespace lengthwise::platform
