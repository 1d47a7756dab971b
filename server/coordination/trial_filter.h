// Parser of the filter of ListTrials.
#ifndef LENGTHWISE_SERVER_COORDINATION_TRIAL_FILTER_H_
#define LENGTHWISE_SERVER_COORDINATION_TRIAL_FILTER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// Conditions `field = value`, joined by " AND ", on state, task, network and encoding, each at most
// once. Values may be in double quotes. An empty filter matches all trials. INVALID_ARGUMENT for
// anything else.
absl::StatusOr<TrialFilter> ParseTrialFilter(absl::string_view text);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_TRIAL_FILTER_H_
