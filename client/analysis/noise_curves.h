// Accuracy by the noise on the embeddings of tokens (relational reasoning on Latin squares, Figure
// 5).
#ifndef LENGTHWISE_CLIENT_ANALYSIS_NOISE_CURVES_H_
#define LENGTHWISE_CLIENT_ANALYSIS_NOISE_CURVES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/analysis/recorded_scores.h"
#include "client/analysis/trial_sets.h"

namespace lengthwise::client {

struct NoiseCurve {
  const TrialSet* set = nullptr;
  // By the noise's standard deviation, 0 for none: mean accuracy over all lengths of each trial.
  std::map<double, std::vector<double>> accuracies;
};

// One for each set of which a trial was evaluated under noise. FAILED_PRECONDITION, saying how to
// do so, where none was. Reads the experiments' accuracies for those without noise.
absl::StatusOr<std::vector<NoiseCurve>> MakeNoiseCurves(
    const std::vector<PlotExperiment>& experiments, const std::vector<TrialSet>& sets,
    const RecordedScores& scores);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_NOISE_CURVES_H_
