// The figure of projected activations (Ruoss et al. 2023, Figure 5).
#ifndef LENGTHWISE_CLIENT_PLOTTING_PROJECTION_FIGURE_H_
#define LENGTHWISE_CLIENT_PLOTTING_PROJECTION_FIGURE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Reads `projections` and, to choose among trials, `accuracies`: of each group the best trial on
// unseen lengths that has projections. Rows: groups; columns: depths. The fitted length is blue,
// others orange and on. FAILED_PRECONDITION: there are none, and which field records them;
// INVALID_ARGUMENT: more rows than a page has room for.
absl::StatusOr<Figure> ProjectionFigure(const std::vector<PlotExperiment>& experiments);

// The trials whose projections ProjectionFigure would show: what to ask the server for. Reads
// `accuracies` alone.
std::vector<const v1::Trial*> TrialsWithProjections(const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_PROJECTION_FIGURE_H_
