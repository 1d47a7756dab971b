#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/scheduling/scheduler.h"

namespace lengthwise::server {

std::string FailureClass(absl::string_view reason) {
  constexpr size_t kMaxBytes = 200;
  std::string text;
  while (!reason.empty() && text.size() < kMaxBytes) {
    const auto end = std::find_if_not(reason.begin(), reason.end(), [](unsigned char letter) {
      return absl::ascii_isalnum(letter);
    });
    size_t length = static_cast<size_t>(end - reason.begin());
    const absl::string_view word = reason.substr(0, length);
    if (word.empty()) {
      length = 1;
      text.push_back(reason.front());
    } else {
      const bool differs = std::any_of(word.begin(), word.end(), [](unsigned char letter) {
        return absl::ascii_isdigit(letter);
      });
      absl::StrAppend(&text, differs ? "#" : word);
    }
    reason.remove_prefix(length);
  }
  return text.substr(0, kMaxBytes);
}

}  // namespace lengthwise::server
