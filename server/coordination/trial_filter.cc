#include "server/coordination/trial_filter.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lengthwise::server {
namespace {

absl::Status Wrong(absl::string_view condition, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "filter: \"", absl::CHexEscape(condition.substr(0, 100)), "\" is not accepted; ", wanted));
}

}  // namespace

absl::StatusOr<TrialFilter> ParseTrialFilter(absl::string_view text) {
  TrialFilter filter;
  if (absl::StripAsciiWhitespace(text).empty()) return filter;
  for (absl::string_view condition : absl::StrSplit(text, " AND ")) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(condition, absl::MaxSplits('=', 1));
    const absl::string_view field = absl::StripAsciiWhitespace(sides.first);
    absl::string_view value = absl::StripAsciiWhitespace(sides.second);
    const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
    if (quoted) value = value.substr(1, value.size() - 2);
    if (value.empty() || value.find_first_of("\" ") != value.npos) {
      return Wrong(condition, "a condition is `field = value` or `field = \"value\"`");
    }
    if (field == "state") {
      v1::TrialState state;
      if (!v1::TrialState_Parse(std::string(value), &state) || state == 0) {
        return Wrong(condition, "a state is QUEUED, RUNNING, SUCCEEDED, FAILED or CANCELLED");
      }
      if (filter.state != 0) return Wrong(condition, "each field may come once");
      filter.state = state;
      continue;
    }
    std::string* const target = field == "task"       ? &filter.task
                                : field == "network"  ? &filter.network
                                : field == "encoding" ? &filter.encoding
                                                      : nullptr;
    if (target == nullptr) return Wrong(condition, "fields are state, task, network, encoding");
    if (!target->empty()) return Wrong(condition, "each field may come once");
    *target = std::string(value);
  }
  return filter;
}

}  // namespace lengthwise::server
