#include "server/coordination/names.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "rpc/status.h"
#include "server/storage/resource_id.h"

namespace lengthwise::server {
namespace {

constexpr absl::string_view kExperimentExample = "\"experiments/quickstart-3\"";
constexpr absl::string_view kTrialExample = "\"experiments/quickstart-3/trials/{trial}\"";

// Binds a token to its list. It prevents mistakes, not forgery.
std::string Seal(absl::string_view scope, absl::string_view start) {
  return platform::Sha256Hex(absl::StrCat(start, "\n", scope)).substr(0, 16);
}

absl::Status Wrong(absl::string_view condition, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      "filter: \"", absl::CHexEscape(condition.substr(0, 100)), "\" is not accepted; ", wanted));
}

absl::Status WrongName(absl::string_view field, absl::string_view name,
                       absl::string_view examples) {
  return rpc::InvalidField(
      field, absl::StrCat("is ", Quoted(name), "; accepted: a name such as ", examples));
}

// Null unless the name is an experiment's or a trial's.
std::optional<TrialPath> PathIn(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  if (parts.size() < 2 || parts[0] != "experiments" || !IsResourceId(parts[1])) return std::nullopt;
  TrialPath path = {.experiment = std::string(parts[1]), .trial = ""};
  if (parts.size() == 2) return path;
  if (parts.size() != 4 || parts[2] != "trials" || !IsResourceId(parts[3])) return std::nullopt;
  path.trial = std::string(parts[3]);
  return path;
}

}  // namespace

std::string ExperimentName(absl::string_view experiment) {
  return absl::StrCat("experiments/", experiment);
}

std::string TrialName(absl::string_view experiment, absl::string_view trial) {
  return absl::StrCat("experiments/", experiment, "/trials/", trial);
}

absl::StatusOr<std::string> ParseExperimentName(absl::string_view name, absl::string_view field) {
  const std::optional<TrialPath> path = PathIn(name);
  if (path.has_value() && path->trial.empty()) return path->experiment;
  return WrongName(field, name, kExperimentExample);
}

absl::StatusOr<TrialPath> ParseTrialName(absl::string_view name, absl::string_view field) {
  const std::optional<TrialPath> path = PathIn(name);
  if (path.has_value() && !path->trial.empty()) return *path;
  return WrongName(field, name, kTrialExample);
}

absl::StatusOr<TrialPath> ParseExperimentOrTrialName(absl::string_view name) {
  const std::optional<TrialPath> path = PathIn(name);
  if (path.has_value()) return *path;
  return WrongName("name", name, absl::StrCat(kExperimentExample, " or ", kTrialExample));
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) return absl::StrCat("\"", text, "\"");
  // Whole characters: a gRPC message must be valid text.
  return absl::StrCat("\"", platform::Utf8Prefix(text, kShown), "...\" (", text.size(), " bytes)");
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
