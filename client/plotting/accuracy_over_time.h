// The figure of accuracies over the wall-clock time of training (Ruoss et al. 2023, Figure 2).
#ifndef LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OVER_TIME_H_
#define LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OVER_TIME_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `accuracies`, of which it needs the evaluations during training: their mean accuracy over
// unseen lengths, over the seconds of training until then; mean over seeds with a band, at each
// group's best learning rate; a panel a task. FAILED_PRECONDITION: nothing of that was recorded;
// says which field of a specification records it.
absl::StatusOr<Figure> AccuracyOverTimeFigure(const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OVER_TIME_H_
