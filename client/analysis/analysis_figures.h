// Pictures of analyses.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_FIGURES_H_
#define LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_FIGURES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/analysis/attention_similarity.h"
#include "client/analysis/encoding_distance.h"
#include "client/analysis/ground_truth_attention.h"
#include "client/analysis/noise_curves.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Accuracy by the noise's standard deviation, a line for each set of trials: the mean over its
// models, with a band from the lowest to the highest. A panel for each task.
Figure NoiseFigure(const std::vector<NoiseCurve>& curves,
                   const std::vector<PlotExperiment>& experiments);

// A point for each model: its accuracy by the cosine of its attention maps to those of `reference`,
// the mean over the reference's models; without the reference's own.
Figure AttentionSimilarityFigure(const AttentionComparison& comparison,
                                 const std::string& reference,
                                 const std::vector<PlotExperiment>& experiments);

// A row for each set of trials: what the cell asked for would attend to by the task's rules, and
// what it attends to in each layer, the mean over its models. INVALID_ARGUMENT for more rows than a
// page has room for, or networks with different numbers of layers.
absl::StatusOr<Figure> GroundTruthFigure(const std::vector<GroundTruthAttention>& rows,
                                         const std::vector<PlotExperiment>& experiments);

// A point for each model: its accuracy by the distance of its first table from `reference`'s.
Figure EncodingDistanceFigure(const EncodingDistances& distances, const std::string& reference,
                              const std::vector<PlotExperiment>& experiments);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_FIGURES_H_
