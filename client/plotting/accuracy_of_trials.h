// The figure of every trial's accuracy by length, nothing averaged (Zhou et al. 2024, Figures 10,
// 11 and F.1): how far trials lie apart that differ in seeds alone.
#ifndef LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OF_TRIALS_H_
#define LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OF_TRIALS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `accuracies`. A panel a task and encoding, with a thin line for each trial of the best
// learning rate and a thick one for the best trial. Where several weight seeds were combined with
// several data seeds, a weight seed has one colour, and the caption says how much of the spread
// each kind of seed makes. FAILED_PRECONDITION: no trial has a final evaluation yet.
absl::StatusOr<Figure> AccuracyOfTrialsFigure(const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OF_TRIALS_H_
