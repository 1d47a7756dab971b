// Trials with accuracies, for tests of figures.
#ifndef LENGTHWISE_CLIENT_PLOTTING_PLOTTED_TRIALS_H_
#define LENGTHWISE_CLIENT_PLOTTING_PLOTTED_TRIALS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

inline std::string MessageOf(const absl::StatusOr<Figure>& figure) {
  return std::string(figure.status().message());
}

// A trial of bucket sort, trained on lengths 1 to 2.
inline v1::Trial MakeTrial(const std::string& encoding, bool randomized, double rate,
                           uint64_t seed) {
  v1::Trial trial;
  v1::TrialSpecification& specification = *trial.mutable_specification();
  specification.mutable_task()->set_name("bucket_sort");
  specification.mutable_task()->set_label("bucket_sort");
  specification.mutable_network()->set_name("encoder");
  specification.mutable_encoding()->set_name(encoding);
  specification.mutable_encoding()->set_label(randomized ? "randomized_" + encoding : encoding);
  (*specification.mutable_encoding()->mutable_parameters())["randomized"].set_bool_value(
      randomized);
  specification.set_learning_rate(rate);
  specification.set_weight_seed(seed);
  specification.mutable_training()->mutable_lengths()->set_min(1);
  specification.mutable_training()->mutable_lengths()->set_max(2);
  specification.mutable_evaluation()->set_seen_up_to(2);
  trial.set_name(absl::StrCat("experiments/e-1/trials/", specification.encoding().label(), "-lr",
                              rate, "-seed", seed));
  return trial;
}

// Adds a trial with accuracies at the lengths 1, 2, 3, ...
inline void Add(PlotExperiment& experiment, const v1::Trial& trial,
                const std::vector<double>& accuracies) {
  experiment.trials.push_back(trial);
  auto& evaluation = *experiment.accuracies.add_evaluations();
  evaluation.set_trial(trial.name());
  evaluation.mutable_accuracies()->set_final(true);
  for (size_t i = 0; i < accuracies.size(); ++i) {
    evaluation.mutable_accuracies()->add_lengths(static_cast<int>(i) + 1);
    evaluation.mutable_accuracies()->add_accuracies(accuracies[i]);
  }
}

inline void AddInterval(PlotExperiment& experiment, const v1::Trial& trial, int64_t step,
                        double seconds, double unseen) {
  auto& evaluation = *experiment.accuracies.add_evaluations();
  evaluation.set_trial(trial.name());
  evaluation.set_step(step);
  evaluation.mutable_accuracies()->set_training_seconds(seconds);
  for (const auto& [length, accuracy] : {std::make_pair(2, 1.0), std::make_pair(4, unseen)}) {
    evaluation.mutable_accuracies()->add_lengths(length);
    evaluation.mutable_accuracies()->add_accuracies(accuracy);
  }
}

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_PLOTTED_TRIALS_H_
