// The figure of accuracies at single lengths over the steps of training (Zhou et al. 2024, Figures
// F.4 to F.7 and F.9): when each length is learned, and by how many of the seeds.
#ifndef LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OVER_STEPS_H_
#define LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OVER_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `accuracies`, of which it needs the evaluations during training. A panel a task and length;
// at each group's best learning rate a thin line for each trial and a thick one for their mean, of
// tasks that are compared by their losses their median. `metric` as in accuracy_by_length.h; only
// one `length`, or with 0 all. FAILED_PRECONDITION: nothing of that was recorded, and which field
// of a specification records it; INVALID_ARGUMENT: no evaluation has the metric or the length, or
// more panels than a page has room for.
absl::StatusOr<Figure> AccuracyOverStepsFigure(const std::vector<PlotExperiment>& experiments,
                                               const std::string& metric = "", int32_t length = 0);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_ACCURACY_OVER_STEPS_H_
