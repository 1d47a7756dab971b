// A task's catalogue entry: facts about the task beyond name, documentation and parameters.
#ifndef LENGTHWISE_TASKS_ENTRY_H_
#define LENGTHWISE_TASKS_ENTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "catalogue/entry.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

struct TaskEntry : catalogue::Entry {
  TaskKind kind = TaskKind::kTransduction;
  // "regular", "deterministic context-free" or "context-sensitive". Empty if the hierarchy does not
  // apply.
  std::string chomsky_level;
  // Token accuracy of random guessing with the default parameters, 0 to 1.
  double random_accuracy = 0;
  // `parameters` come from catalogue::Resolve with this entry.
  std::function<std::unique_ptr<Task>(const catalogue::Parameters& parameters)> create;
  // True if reordering the input never changes the target. Such a task needs no positional
  // information.
  bool permutation_invariant = false;
  // The axis of generalization: its name in a table's heading, and its label on a figure.
  std::string axis = "length";
  std::string axis_title = "input length";
  // Name of the accuracy in a table's title and on a figure's axis.
  std::string accuracy_title = "token accuracy";
  // Default of Evaluation.seen_up_to: the largest value of the axis that training covers. Absent if
  // that is the maximum of training.lengths.
  std::optional<int32_t> seen_up_to;
  // True if results are compared by loss (lower is better) instead of accuracy.
  bool compared_by_loss = false;
  // Name of the loss.
  std::string loss_title = "cross-entropy";
};

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_ENTRY_H_
