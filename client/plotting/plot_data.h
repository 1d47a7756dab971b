// From the server to what figures are made of.
#ifndef LENGTHWISE_CLIENT_PLOTTING_PLOT_DATA_H_
#define LENGTHWISE_CLIENT_PLOTTING_PLOT_DATA_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Which trials of an experiment are drawn: those that have one of the names (labels) in every list
// that is not empty.
struct TrialFilter {
  std::vector<std::string> tasks;
  std::vector<std::string> networks;
  std::vector<std::string> encodings;
  std::vector<double> learning_rates;
  // What FindTrial takes behind the experiment's name.
  std::vector<std::string> trials;
};

// Each of `names` is what FindExperiment accepts, or FindTrial: then the experiment with this trial
// alone. Fills the experiments' names, trials and, with `with_intervals` also those made during
// training, accuracies. NOT_FOUND: no such experiment or trial, or a name in the filter that no
// trial has, with what was probably meant.
absl::StatusOr<std::vector<PlotExperiment>> FetchExperiments(Connection& connection,
                                                             const std::vector<std::string>& names,
                                                             const TrialFilter& filter,
                                                             bool with_intervals);

// Fill the other fields of the experiments.
absl::Status FetchLosses(Connection& connection, std::vector<PlotExperiment>& experiments);
// For the trials that AttentionFigure and ProjectionFigure show; `length` 0 stands for all lengths.
absl::Status FetchAttention(Connection& connection, int length,
                            std::vector<PlotExperiment>& experiments);
absl::Status FetchProjections(Connection& connection, std::vector<PlotExperiment>& experiments);
absl::Status FetchAnalyses(Connection& connection, std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_PLOT_DATA_H_
