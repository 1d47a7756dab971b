#include "client/analysis/trial_sets.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "catalogue/suggestion.h"
#include "client/rendering/component_label.h"

namespace lengthwise::client {

std::vector<TrialSet> SetsOfTrials(const std::vector<PlotExperiment>& experiments) {
  std::vector<TrialSet> sets;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) {
      if (trial.state() != v1::SUCCEEDED) continue;
      const v1::TrialSpecification& specification = trial.specification();
      const TrialSet wanted{.task = Label(specification.task()),
                            .network = Label(specification.network()),
                            .encoding = Label(specification.encoding()),
                            .learning_rate = specification.learning_rate()};
      auto set = std::find_if(sets.begin(), sets.end(), [&](const TrialSet& other) {
        return other.task == wanted.task && other.network == wanted.network &&
               other.encoding == wanted.encoding && other.learning_rate == wanted.learning_rate;
      });
      if (set == sets.end()) set = sets.insert(sets.end(), wanted);
      set->trials.push_back(&trial);
    }
  }
  return sets;
}

const TrialSet* ReferenceOf(const TrialSet& set, absl::string_view reference,
                            const std::vector<TrialSet>& sets) {
  for (const TrialSet& other : sets) {
    if (other.encoding == reference && other.task == set.task && other.network == set.network &&
        other.learning_rate == set.learning_rate) {
      return &other;
    }
  }
  return nullptr;
}

absl::Status CheckReference(absl::string_view reference, const std::vector<TrialSet>& sets) {
  std::vector<std::string> encodings;
  for (const TrialSet& set : sets) {
    if (set.encoding == reference) return absl::OkStatus();
    if (std::find(encodings.begin(), encodings.end(), set.encoding) == encodings.end()) {
      encodings.push_back(set.encoding);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--reference: no trial that succeeded has the encoding \"", reference, "\"",
                   catalogue::Suggestion(reference, encodings), "; there are ",
                   encodings.empty() ? "none at all" : absl::StrJoin(encodings, ", ")));
}

std::map<std::string, double> Accuracies(const std::vector<PlotExperiment>& experiments) {
  std::map<std::string, double> accuracies;
  for (const PlotExperiment& experiment : experiments) {
    const TrialScore score = FinalScore(experiment);
    for (const v1::Trial& trial : experiment.trials) {
      const double accuracy = score(trial);
      if (!std::isnan(accuracy)) accuracies[trial.name()] = accuracy;
    }
  }
  return accuracies;
}

Seeds SeedsOf(const v1::Trial& trial) {
  return {trial.specification().weight_seed(), trial.specification().data_seed()};
}

}  // namespace lengthwise::client
