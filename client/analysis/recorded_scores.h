// What trials recorded beside their accuracies: scores of single sequences, and accuracies under
// noise.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_RECORDED_SCORES_H_
#define LENGTHWISE_CLIENT_ANALYSIS_RECORDED_SCORES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/plotting/trial_groups.h"
#include "proto/event.pb.h"

namespace lengthwise::client {

// The newest of each kind, by the trial's full name.
struct RecordedScores {
  std::map<std::string, v1::NoiseAccuracies> noise;
  // And by length.
  std::map<std::string, std::map<int32_t, v1::SequenceScores>> sequences;
};

absl::StatusOr<RecordedScores> FetchRecordedScores(Connection& connection,
                                                   const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_RECORDED_SCORES_H_
