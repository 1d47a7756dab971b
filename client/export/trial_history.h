// What was measured of a trial, from the event log: nothing averaged or left out.
#ifndef LENGTHWISE_CLIENT_EXPORT_TRIAL_HISTORY_H_
#define LENGTHWISE_CLIENT_EXPORT_TRIAL_HISTORY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "proto/event.pb.h"

namespace lengthwise::client {

struct TrialHistory {
  struct Evaluation {
    int64_t step = 0;
    // Seconds since 1970.
    double time = 0;
    v1::LengthAccuracies accuracies;
  };

  // The whole loss curve, all columns as long as `steps`,
  v1::TrainingPoints points;
  // and when each point was sent, seconds since 1970.
  std::vector<double> times;
  // Those during training in their order, and the full one at the end.
  std::vector<Evaluation> evaluations;
  // Of single sequences of the final evaluation, by length, and of that evaluation under noise;
  // empty where they were not asked for.
  std::map<int32_t, v1::SequenceScores> sequence_scores;
  v1::NoiseAccuracies noise_accuracies;
};

// Of the trial's name. Errors are the server's; DATA_LOSS for columns of different lengths.
absl::StatusOr<TrialHistory> FetchHistory(Connection& connection, const std::string& trial);

// Mean accuracy over the lengths up to `seen_up_to`, or over those above it; not-a-number where
// there are none.
double MeanAccuracy(const v1::LengthAccuracies& accuracies, int32_t seen_up_to, bool seen);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_TRIAL_HISTORY_H_
