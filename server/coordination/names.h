// Resource names and page tokens: what clients hold of experiments, trials, leases and lists.
#ifndef LENGTHWISE_SERVER_COORDINATION_NAMES_H_
#define LENGTHWISE_SERVER_COORDINATION_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::server {

struct TrialPath {
  std::string experiment;
  std::string trial;  // empty when an experiment was named
};

// "experiments/{experiment}" and "experiments/{experiment}/trials/{trial}".
std::string ExperimentName(absl::string_view experiment);
std::string TrialName(absl::string_view experiment, absl::string_view trial);

// INVALID_ARGUMENT says what was given and what is accepted.
absl::StatusOr<std::string> ParseExperimentName(absl::string_view name);
absl::StatusOr<TrialPath> ParseTrialName(absl::string_view name);
absl::StatusOr<TrialPath> ParseExperimentOrTrialName(absl::string_view name);

// Of a StateChange: "user ada". What a user did without a name, "anonymous" did.
std::string UserActor(absl::string_view user);

// A page token says where the next page starts and is bound to what is listed (`scope`): with
// another list or filter it is INVALID_ARGUMENT.
std::string EncodePageToken(absl::string_view scope, int64_t start);
absl::StatusOr<int64_t> DecodePageToken(absl::string_view scope, absl::string_view token);

// Entries of a page: the default for 0; INVALID_ARGUMENT below 0 and above 1,000.
absl::StatusOr<int64_t> PageSize(int32_t requested);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_NAMES_H_
