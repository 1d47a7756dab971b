// The figure of training losses.
#ifndef LENGTHWISE_CLIENT_PLOTTING_LOSS_FIGURE_H_
#define LENGTHWISE_CLIENT_PLOTTING_LOSS_FIGURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `losses` and, for the choice of the learning rate, `accuracies`. The loss on the training
// batches, or with `metric` "accuracy" the accuracy there, over the steps, smoothed by a running
// mean: mean over seeds with a band, of each group's learning rate that is best on unseen lengths,
// or has the lowest last loss where nothing is evaluated yet; a panel a task. The axis is
// logarithmic where the losses span more than a decade. FAILED_PRECONDITION: there are no points
// yet; INVALID_ARGUMENT: another metric, for training records no other.
absl::StatusOr<Figure> LossFigure(const std::vector<PlotExperiment>& experiments,
                                  const std::string& metric = "");

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_LOSS_FIGURE_H_
