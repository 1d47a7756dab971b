#include "client/analysis/human_comparison.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/analysis/puzzle_task.h"
#include "client/connection/names.h"
#include "tasks/latin_square/puzzle_file.h"
#include "tasks/puzzles.h"

namespace lengthwise::client {
namespace {

// The validation puzzles of each condition (from 1), in the order in which they are evaluated.
using PuzzlesByCondition = std::map<int32_t, std::vector<std::string>>;

absl::StatusOr<PuzzlesByCondition> ValidationPuzzles(const v1::Trial& trial) {
  const auto task = PuzzleTaskOf(trial);
  if (!task.ok()) return task.status();
  const tasks::PuzzleTask& puzzles = **task;
  const auto data = puzzles.Data(trial.specification().data_seed());
  if (!data.ok()) {
    return absl::Status(
        data.status().code(),
        absl::StrCat("the validation puzzles of ", ShortName(trial.name()),
                     " cannot be made here as the worker made them: ", data.status().message(),
                     "; files of puzzles must be within this command's reach, too"));
  }
  const tasks::PuzzleSet& validation = data->validation;
  const auto cells = static_cast<size_t>(puzzles.cells());
  PuzzlesByCondition by_condition;
  for (size_t i = 0; i < static_cast<size_t>(validation.size()); ++i) {
    by_condition[validation.conditions[i] + 1].push_back(
        puzzles.Format(absl::MakeSpan(validation.tokens).subspan(i * cells, cells)));
  }
  return by_condition;
}

}  // namespace

absl::StatusOr<HumanAccuracies> ReadHumanAccuracies(const std::string& path) {
  const auto puzzles = tasks::latin_square::ReadPuzzleFile(path);
  if (!puzzles.ok()) return puzzles.status();
  HumanAccuracies accuracies;
  for (const tasks::latin_square::FiledPuzzle& puzzle : *puzzles) {
    if (!puzzle.human_accuracy.has_value()) continue;
    accuracies[tasks::latin_square::FormatPuzzle(puzzle.solved.puzzle)] = *puzzle.human_accuracy;
  }
  if (!accuracies.empty()) return accuracies;
  return absl::InvalidArgumentError(
      absl::StrCat(path,
                   " has no puzzle with a \"human_accuracy\"; it needs {\"puzzles\": [{\"puzzle\": "
                   "\"0040405210200030\", \"human_accuracy\": 0.975}, ...]}"));
}

absl::StatusOr<std::vector<HumanComparison>> CompareWithHumans(const std::vector<TrialSet>& sets,
                                                               const RecordedScores& scores,
                                                               const HumanAccuracies& humans) {
  // Trials of one task have the same validation puzzles, whatever their seeds; by
  // TrialSet::training, which the task is a part of.
  std::map<std::string, PuzzlesByCondition> puzzles_of_task;
  std::vector<HumanComparison> rows;
  int64_t common = 0;
  for (const TrialSet& set : sets) {
    HumanComparison row{.set = &set};
    std::map<std::string, std::pair<double, int>> solved;  // by puzzle: sum and number
    std::set<Seeds> counted;
    for (const v1::Trial* trial : set.trials) {
      const auto recorded = scores.sequences.find(trial->name());
      if (recorded == scores.sequences.end()) continue;
      if (!counted.insert(SeedsOf(*trial)).second) continue;
      if (puzzles_of_task.count(set.training) == 0) {
        auto puzzles = ValidationPuzzles(*trial);
        if (!puzzles.ok()) return puzzles.status();
        puzzles_of_task[set.training] = *std::move(puzzles);
      }
      ++row.models;
      for (const auto& [condition, of_condition] : recorded->second) {
        const std::vector<std::string>& puzzles = puzzles_of_task[set.training][condition];
        const size_t count =
            std::min(puzzles.size(), static_cast<size_t>(of_condition.accuracies_size()));
        for (size_t i = 0; i < count; ++i) {
          const auto human = humans.find(puzzles[i]);
          if (human == humans.end()) continue;
          auto& [sum, number] = solved[puzzles[i]];
          if (number == 0) {
            row.puzzles.push_back(puzzles[i]);
            row.human_accuracies.push_back(human->second);
          }
          sum += of_condition.accuracies(static_cast<int>(i));
          ++number;
        }
      }
    }
    for (const std::string& puzzle : row.puzzles) {
      row.model_accuracies.push_back(solved[puzzle].first / solved[puzzle].second);
    }
    common += static_cast<int64_t>(row.puzzles.size());
    if (row.models > 0) rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    return absl::FailedPreconditionError(
        "no trial has scores of single puzzles; set evaluation.sequence_scores, or evaluate stored "
        "models with `lengthwise evaluate TRIAL --sequence_scores`");
  }
  if (common == 0) {
    return absl::FailedPreconditionError(
        "none of the validation puzzles is in the file of people's answers; validate on these: "
        "`tasks: {name: latin_square, validation_file: NAME}`, with the file in the worker's "
        "LENGTHWISE_PUZZLE_DIR");
  }
  return rows;
}

}  // namespace lengthwise::client
