#include "server/coordination/names.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/storage/resource_id.h"

namespace lengthwise::server {
namespace {

// Binds a token to its list. It prevents mistakes, not forgery.
std::string Seal(absl::string_view scope, absl::string_view start) {
  return platform::Sha256Hex(absl::StrCat(start, "\n", scope)).substr(0, 16);
}

absl::Status Wrong(absl::string_view condition, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "filter: \"", absl::CHexEscape(condition.substr(0, 100)), "\" is not accepted; ", wanted));
}

}  // namespace

std::string ExperimentName(absl::string_view experiment) {
  return absl::StrCat("experiments/", experiment);
}

std::string TrialName(absl::string_view experiment, absl::string_view trial) {
  return absl::StrCat("experiments/", experiment, "/trials/", trial);
}

absl::StatusOr<TrialPath> ParseExperimentOrTrialName(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  const bool experiment = parts.size() == 2 && parts[0] == "experiments" && IsResourceId(parts[1]);
  const bool trial = parts.size() == 4 && parts[0] == "experiments" && IsResourceId(parts[1]) &&
                     parts[2] == "trials" && IsResourceId(parts[3]);
  if (experiment) return TrialPath{.experiment = std::string(parts[1]), .trial = ""};
  if (trial) {
    return TrialPath{.experiment = std::string(parts[1]), .trial = std::string(parts[3])};
  }
  return absl::InvalidArgumentError(absl::StrCat("name: \"", absl::CHexEscape(name.substr(0, 300)),
                                                 "\" is neither experiments/{experiment} nor "
                                                 "experiments/{experiment}/trials/{trial}"));
}

absl::StatusOr<std::string> ParseExperimentName(absl::string_view name) {
  ASSIGN_OR_RETURN(TrialPath path, ParseExperimentOrTrialName(name));
  if (!path.trial.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: \"", name, "\" names a trial, wanted is experiments/{experiment}"));
  }
  return path.experiment;
}

absl::StatusOr<TrialPath> ParseTrialName(absl::string_view name) {
  absl::StatusOr<TrialPath> path = ParseExperimentOrTrialName(name);
  if (path.ok() && path->trial.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: \"", name,
                     "\" names an experiment, wanted is experiments/{experiment}/trials/{trial}"));
  }
  return path;
}

std::string UserActor(absl::string_view user) {
  return absl::StrCat("user ", user.empty() ? "anonymous" : user);
}

std::string EncodePageToken(absl::string_view scope, int64_t start) {
  const std::string text = absl::StrCat(start);
  return absl::WebSafeBase64Escape(absl::StrCat(text, ":", Seal(scope, text)));
}

absl::StatusOr<int64_t> DecodePageToken(absl::string_view scope, absl::string_view token) {
  if (token.empty()) return 0;
  std::string text;
  int64_t start = 0;
  if (token.size() <= 100 && absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &start) && start >= 0 &&
        parts[1] == Seal(scope, parts[0])) {
      return start;
    }
  }
  return absl::InvalidArgumentError(
      "page_token: not one that this list, with this filter, returned; start without a token");
}

int64_t PageSize(int32_t requested) { return requested == 0 ? 100 : requested; }

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
