// Resource names and page tokens.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/coordination/names.h"
#include "server/storage/resource_id.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto path = server::ParseExperimentOrTrialName(text);
  if (path.ok()) {
    Must(server::IsResourceId(path->experiment), "experiment ids are valid");
    Must(path->trial.empty() || server::IsResourceId(path->trial), "trial ids are valid");
    Must(text == (path->trial.empty() ? server::ExperimentName(path->experiment)
                                      : server::TrialName(path->experiment, path->trial)),
         "a parsed name formats back");
  } else {
    Must(path.status().code() == absl::StatusCode::kInvalidArgument, "a name is read or refused");
  }
  // The first line is the scope, the rest the token.
  const size_t end = text.find('\n');
  if (end == absl::string_view::npos) return 0;
  const absl::string_view scope = text.substr(0, end);
  const auto start = server::DecodePageToken(scope, text.substr(end + 1));
  if (start.ok()) {
    Must(*start >= 0, "a page starts at 0 or later");
  } else {
    Must(start.status().code() == absl::StatusCode::kInvalidArgument, "a token is read or refused");
  }
  const std::string token = server::EncodePageToken(scope, static_cast<int64_t>(size));
  Must(*server::DecodePageToken(scope, token) == static_cast<int64_t>(size), "a token decodes");
  const std::string another_scope = absl::StrCat("another ", scope);
  Must(server::DecodePageToken(another_scope, token).status().code() ==
           absl::StatusCode::kInvalidArgument,
       "a token is valid for its list only");
  return 0;
}
