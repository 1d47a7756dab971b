// The texts of requests: resource names, page tokens and filters.
#ifndef LENGTHWISE_SERVER_COORDINATION_NAMES_H_
#define LENGTHWISE_SERVER_COORDINATION_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/storage/records.h"

namespace lengthwise::server {

struct TrialPath {
  std::string experiment;
  std::string trial;  // empty if the name is an experiment's
};

// "experiments/{experiment}" and "experiments/{experiment}/trials/{trial}".
std::string ExperimentName(absl::string_view experiment);
std::string TrialName(absl::string_view experiment, absl::string_view trial);

// INVALID_ARGUMENT names the request's field (rpc::InvalidField), and states the name given and the
// form accepted.
absl::StatusOr<std::string> ParseExperimentName(absl::string_view name,
                                                absl::string_view field = "name");
absl::StatusOr<TrialPath> ParseTrialName(absl::string_view name, absl::string_view field = "name");
absl::StatusOr<TrialPath> ParseExperimentOrTrialName(absl::string_view name);

// A client's text, safe to repeat in an error message.
std::string Quoted(absl::string_view text);

// The actor of a StateChange, such as "user ada". "user anonymous" for an empty name.
std::string UserActor(absl::string_view user);

// A page token holds the start of the next page and is bound to its list (`scope`):
// INVALID_ARGUMENT with another list or filter.
std::string EncodePageToken(absl::string_view scope, int64_t start);
absl::StatusOr<int64_t> DecodePageToken(absl::string_view scope, absl::string_view token);

// The largest page that a request may ask for (CheckPage).
inline constexpr int32_t kMaxPageSize = 1'000;
// Number of experiments that are read at once: each has a specification and its text, which may
// have megabytes.
inline constexpr int32_t kExperimentsAtOnce = 16;
// Number of entries in a page: the default for 0.
int64_t PageSize(int32_t requested);

// Parses the filter of ListTrials: conditions `field = value`, joined by " AND ", on state, task,
// network and encoding, each at most once. Values may be in double quotes. An empty filter matches
// all trials. INVALID_ARGUMENT for anything else.
absl::StatusOr<TrialFilter> ParseTrialFilter(absl::string_view text);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_NAMES_H_
