#include "client/analysis/noise_curves.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::client {

absl::StatusOr<std::vector<NoiseCurve>> MakeNoiseCurves(
    const std::vector<PlotExperiment>& experiments, const std::vector<TrialSet>& sets,
    const RecordedScores& scores) {
  std::map<std::string, const v1::LengthAccuracies*> finals;
  for (const PlotExperiment& experiment : experiments) finals.merge(FinalEvaluations(experiment));
  std::vector<NoiseCurve> curves;
  for (const TrialSet& set : sets) {
    NoiseCurve curve{.set = &set};
    std::set<Seeds> counted;
    for (const v1::Trial* trial : set.trials) {
      const auto found = scores.noise.find(trial->name());
      if (found == scores.noise.end() || !counted.insert(SeedsOf(*trial)).second) continue;
      const v1::NoiseAccuracies& noise = found->second;
      for (int i = 0; i < noise.deviations_size(); ++i) {
        curve.accuracies[noise.deviations(i)].push_back(noise.accuracies(i));
      }
      const auto plain = finals.find(trial->name());
      if (plain == finals.end() || plain->second->accuracies().empty()) continue;
      double sum = 0;
      for (const double accuracy : plain->second->accuracies()) sum += accuracy;
      curve.accuracies[0].push_back(sum / plain->second->accuracies_size());
    }
    if (!curve.accuracies.empty()) curves.push_back(std::move(curve));
  }
  if (curves.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no trial of ", ExperimentNames(experiments),
        " was evaluated under noise; set evaluation.embedding_noise, or evaluate stored models "
        "with `lengthwise evaluate TRIAL --embedding_noise 0.02,0.04,0.06,0.08,0.1`"));
  }
  return curves;
}

}  // namespace lengthwise::client
