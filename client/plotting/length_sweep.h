// The figure of accuracies by a parameter of the encodings, such as the number of positions that
// they draw from (Ruoss et al. 2023, Figure 3).
#ifndef LENGTHWISE_CLIENT_PLOTTING_LENGTH_SWEEP_H_
#define LENGTHWISE_CLIENT_PLOTTING_LENGTH_SWEEP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `accuracies`. The highest mean accuracy on unseen lengths over seeds and learning rates, by
// a numeric parameter in which the encodings differ, with all trials as points behind; a line a
// task (and a kind of encoding). `parameter` empty: max_position where it differs, otherwise one
// that does. FAILED_PRECONDITION: the encodings do not differ in it, or no trial has a final
// evaluation.
absl::StatusOr<Figure> LengthSweepFigure(const std::vector<PlotExperiment>& experiments,
                                         const std::string& parameter);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_LENGTH_SWEEP_H_
