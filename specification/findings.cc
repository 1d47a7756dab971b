#include "specification/findings.h"

#include <utility>

#include "absl/strings/match.h"

namespace lengthwise::specification {

Findings::Findings(const Parsed& parsed)
    : problems_(parsed.problems), unread_(parsed.unread.begin(), parsed.unread.end()) {}

bool Findings::IsUnread(absl::string_view field) const {
  for (size_t i = 1; i <= field.size(); ++i) {
    if (i < field.size() && field[i] != '.' && field[i] != '[') continue;
    if (unread_.count(std::string(field.substr(0, i))) > 0) return true;
  }
  return false;
}

void Findings::Add(std::string field, std::string description) {
  if (IsUnread(field) || !seen_.emplace(field, description).second) return;
  problems_.push_back({std::move(field), std::move(description)});
}

void Findings::AddAll(const std::vector<catalogue::Problem>& problems) {
  for (const catalogue::Problem& problem : problems) Add(problem.field, problem.description);
}

void Findings::AddMissing(std::string field, std::string description) {
  if (ignore_missing_) return;
  const auto part = unread_.lower_bound(field);
  if (part != unread_.end() && absl::StartsWith(*part, field)) return;
  Add(std::move(field), std::move(description));
}

}  // namespace lengthwise::specification
