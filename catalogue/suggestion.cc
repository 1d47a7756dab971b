#include "catalogue/suggestion.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace lengthwise::catalogue {
namespace {

constexpr size_t kMostListed = 20;

std::string Folded(absl::string_view name) {
  std::string folded;
  for (char c : name) {
    if (c != '_' && c != '-') {
      folded.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  return folded;
}

}  // namespace

int NameDistance(absl::string_view a_name, absl::string_view b_name) {
  const std::string a = Folded(a_name);
  const std::string b = Folded(b_name);
  // Rows of the dynamic program for prefixes of `a` two back, one back, and now.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

std::string Suggestion(absl::string_view given, absl::Span<const std::string> accepted) {
  if (accepted.empty()) return "";
  // A very long word is no misspelling, and the distance would take quadratic time.
  if (given.size() <= 100) {
    const auto nearest = std::min_element(accepted.begin(), accepted.end(),
                                          [given](const std::string& a, const std::string& b) {
                                            return NameDistance(given, a) < NameDistance(given, b);
                                          });
    const int distance = NameDistance(given, *nearest);
    // Half of the letters may be wrong ("rotery" for "rope"), but some must be right.
    if (distance <= static_cast<int>(std::max(given.size(), nearest->size())) / 2 &&
        distance < static_cast<int>(std::min(given.size(), nearest->size()))) {
      return absl::StrCat("; did you mean \"", *nearest, "\"?");
    }
  }
  std::vector<std::string> sorted(accepted.begin(), accepted.end());
  std::sort(sorted.begin(), sorted.end());
  const bool cut = sorted.size() > kMostListed;
  if (cut) sorted.resize(kMostListed);
  return absl::StrCat("; accepted: ", absl::StrJoin(sorted, ", "), cut ? ", ..." : "");
}

}  // namespace lengthwise::catalogue
