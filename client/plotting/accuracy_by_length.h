// The figure of final accuracies by input length (Ruoss et al. 2023, Figure 4).
#ifndef LENGTHWISE_CLIENT_PLOTTING_ACCURACY_BY_LENGTH_H_
#define LENGTHWISE_CLIENT_PLOTTING_ACCURACY_BY_LENGTH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `accuracies`. Mean over seeds with a band from the lowest to the highest, at each group's
// best learning rate; a panel a task. FAILED_PRECONDITION: no trial has a final evaluation yet.
absl::StatusOr<Figure> AccuracyByLengthFigure(const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_ACCURACY_BY_LENGTH_H_
