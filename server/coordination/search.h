// Search: finds what a user means by a text, an experiment or a trial of one (FindExperiment).
#ifndef LENGTHWISE_SERVER_COORDINATION_SEARCH_H_
#define LENGTHWISE_SERVER_COORDINATION_SEARCH_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/experiment_service.pb.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

struct SearchResult {
  // Resource names; the trial's is empty if the text names an experiment.
  std::string experiment;
  std::string trial;
  v1::FindExperimentResponse::Match match = v1::FindExperimentResponse::FULL_NAME;
};

// Errors are those that the rpc documents.
absl::StatusOr<SearchResult> Search(StorageReader& reader,
                                    const v1::FindExperimentRequest& request);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SEARCH_H_
