// Models' answers to single puzzles beside people's (relational reasoning on Latin squares, Figure
// 6).
#ifndef LENGTHWISE_CLIENT_ANALYSIS_HUMAN_COMPARISON_H_
#define LENGTHWISE_CLIENT_ANALYSIS_HUMAN_COMPARISON_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/analysis/recorded_scores.h"
#include "client/analysis/trial_sets.h"

namespace lengthwise::client {

// People's accuracies, 0 to 1, by the puzzle as the task prints it ("0040405210200030").
using HumanAccuracies = std::map<std::string, double>;

// From a file of tasks/latin_square/puzzle_file.h; with the errors of reading one, and
// INVALID_ARGUMENT where it has no puzzle with a "human_accuracy".
absl::StatusOr<HumanAccuracies> ReadHumanAccuracies(const std::string& path);

struct HumanComparison {
  const TrialSet* set = nullptr;
  int64_t models = 0;
  // In the order in which the models saw them.
  std::vector<std::string> puzzles;
  // Of each puzzle: the share of the models that solve it, and people's.
  std::vector<double> model_accuracies;
  std::vector<double> human_accuracies;
};

// Compares the validation puzzles that are in both, a row for each set with scores of single
// sequences. FAILED_PRECONDITION: no trial has such scores, and how to record them; a task that has
// no puzzles; no puzzle is in both.
absl::StatusOr<std::vector<HumanComparison>> CompareWithHumans(const std::vector<TrialSet>& sets,
                                                               const RecordedScores& scores,
                                                               const HumanAccuracies& humans);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_HUMAN_COMPARISON_H_
