// The figures of what is wrong with the answers to text (Zhou et al. 2024, Figures 9 and F.10).
#ifndef LENGTHWISE_CLIENT_PLOTTING_ANSWER_ERRORS_H_
#define LENGTHWISE_CLIENT_PLOTTING_ANSWER_ERRORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Both read `analyses` and show one size, all trials of a group and learning rate together; a panel
// a task. `size` 0 stands for the longest that every trial with errors was asked.
// FAILED_PRECONDITION: there are none, or none of the size.
//
// How many answers are wrong at a place, of all answers; the caption says into how many of the
// first wrong places there is a carry.
absl::StatusOr<Figure> ErrorPlacesFigure(const std::vector<PlotExperiment>& experiments,
                                         int32_t size = 0);
// How many digits are wrong, of the answers with any.
absl::StatusOr<Figure> ErrorCountsFigure(const std::vector<PlotExperiment>& experiments,
                                         int32_t size = 0);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_ANSWER_ERRORS_H_
