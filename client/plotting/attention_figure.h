// The figure of attention maps (Ruoss et al. 2023, Figure 6).
#ifndef LENGTHWISE_CLIENT_PLOTTING_ATTENTION_FIGURE_H_
#define LENGTHWISE_CLIENT_PLOTTING_ATTENTION_FIGURE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

struct AttentionChoice {
  // From 1; 0 for all layers side by side.
  int layer = 0;
  // From 1; 0 for the maximum over heads, or all heads side by side where a layer is chosen.
  int head = 0;
  // Input length of the maps; 0 for all that were recorded.
  int length = 0;
  // Which of the sequences of a length, from 1.
  int sequence = 1;
};

// Reads `attention_maps` and, to choose among trials, `accuracies`: of each group the best trial on
// unseen lengths that has maps. Rows: groups and their lengths (or inputs); columns: layers, or
// heads. FAILED_PRECONDITION: there are no such maps, and which field records them;
// INVALID_ARGUMENT: no such layer, head, length or sequence, or more rows than a page has room for.
absl::StatusOr<Figure> AttentionFigure(const std::vector<PlotExperiment>& experiments,
                                       const AttentionChoice& choice);

// INVALID_ARGUMENT for more rows of maps than a page has room for, with how to have fewer.
absl::Status CheckMapRows(size_t rows);

// The trials whose maps AttentionFigure would show, of those that might have some: what to ask the
// server for. Reads `accuracies` alone.
std::vector<const v1::Trial*> TrialsWithAttention(const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_ATTENTION_FIGURE_H_
