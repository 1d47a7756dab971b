#include "client/analysis/puzzle_task.h"

#include "absl/strings/str_cat.h"
#include "client/connection/names.h"
#include "specification/component_parameters.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {

absl::StatusOr<std::unique_ptr<const tasks::PuzzleTask>> PuzzleTaskOf(const v1::Trial& trial) {
  const v1::Component& component = trial.specification().task();
  auto task = tasks::CreateTask(component.name(), specification::ParametersOf(component));
  if (!task.ok()) return task.status();
  if ((*task)->kind() != tasks::TaskKind::kPuzzle) {
    return absl::FailedPreconditionError(absl::StrCat(ShortName(trial.name()), " learns ",
                                                      component.name(), ", which has no puzzles"));
  }
  return std::unique_ptr<const tasks::PuzzleTask>(
      static_cast<const tasks::PuzzleTask*>(task->release()));
}

}  // namespace lengthwise::client
