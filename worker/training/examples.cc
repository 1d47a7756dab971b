#include "worker/training/examples.h"

#include <cstdlib>
#include <numeric>
#include <utility>

#include "worker/training/puzzle_examples.h"
#include "worker/training/regression_examples.h"
#include "worker/training/transduction_examples.h"

namespace lengthwise::worker::training {

std::vector<uint32_t> RowsFrom(int64_t first, int64_t count) {
  std::vector<uint32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(first));
  return rows;
}

std::unique_ptr<Examples> CreateExamples(std::unique_ptr<tasks::Task> task,
                                         const v1::LengthRange& lengths) {
  switch (task->kind()) {
    case tasks::TaskKind::kTransduction:
      return std::make_unique<TransductionExamples>(std::unique_ptr<tasks::TransductionTask>(
          static_cast<tasks::TransductionTask*>(task.release())));
    case tasks::TaskKind::kPuzzle:
      return std::make_unique<PuzzleExamples>(
          std::unique_ptr<tasks::PuzzleTask>(static_cast<tasks::PuzzleTask*>(task.release())));
    case tasks::TaskKind::kRegression:
      return std::make_unique<RegressionExamples>(
          std::unique_ptr<tasks::RegressionTask>(
              static_cast<tasks::RegressionTask*>(task.release())),
          lengths);
    case tasks::TaskKind::kText:
      break;
  }
  std::abort();  // no network learns text yet, and so the blueprint refused it
}

}  // namespace lengthwise::worker::training
