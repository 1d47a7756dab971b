// The figure of final accuracies by input length (Ruoss et al. 2023, Figure 4).
#ifndef LENGTHWISE_CLIENT_PLOTTING_ACCURACY_BY_LENGTH_H_
#define LENGTHWISE_CLIENT_PLOTTING_ACCURACY_BY_LENGTH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `accuracies`. Mean over seeds with a band from the lowest to the highest, of tasks that are
// compared by their losses the median with the 10th and 90th percentile; at each group's best
// learning rate; a panel a task. `metric` (evaluation_metrics.h) stands in the place of accuracy or
// loss; empty: which of the two the task's results are. FAILED_PRECONDITION: no trial has a final
// evaluation yet; INVALID_ARGUMENT: none has the metric, and which there are.
absl::StatusOr<Figure> AccuracyByLengthFigure(const std::vector<PlotExperiment>& experiments,
                                              const std::string& metric = "");

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_ACCURACY_BY_LENGTH_H_
