// What models attend to beside what the answer depends on: for puzzles the cells of the rows and
// columns that settle the cell asked for (relational reasoning on Latin squares, section 2.1).
//
// Of each puzzle the token of the cell asked for is looked at. The ground truth is what the task's
// rules say of that puzzle and knows nothing of any model; attention_similarity.h takes the maps of
// models with another encoding for it.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_GROUND_TRUTH_ATTENTION_H_
#define LENGTHWISE_CLIENT_ANALYSIS_GROUND_TRUTH_ATTENTION_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "client/analysis/trial_sets.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// How much of its attention the cell asked for gives to the cells that settle it.
struct AttentionShares {
  int64_t puzzles = 0;  // of each model
  // What it would give them, 0 to 1, attending to all cells alike: mean over the puzzles.
  double even = 0;
  // By layer: of each model the mean over the puzzles and heads, 0 to 1.
  std::vector<std::vector<double>> by_layer;
};

struct GroundTruthAttention {
  const TrialSet* set = nullptr;
  int64_t models = 0;
  int64_t cells = 0;
  // [cells, cells]: row a is of the puzzles that ask for cell a, the mean over them; all 0 where no
  // puzzle asks for it. First the ground truth, that the cells which settle a share evenly; then of
  // each layer the attention of a, the mean over heads and models.
  std::vector<double> truth;
  std::vector<std::vector<double>> layers;
  AttentionShares all;
  // By number of vectors, the length of a map.
  std::map<int32_t, AttentionShares> by_length;
};

// One for each set of puzzles with maps, in their order. FAILED_PRECONDITION: no trial learned
// puzzles, or none has maps, and how to record them; models of a set have different maps.
absl::StatusOr<std::vector<GroundTruthAttention>> CompareWithGroundTruth(
    Connection& connection, const std::vector<TrialSet>& sets);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_GROUND_TRUTH_ATTENTION_H_
