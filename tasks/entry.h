// What the catalogue says of one task, beyond its name, documentation and parameters.
#ifndef LENGTHWISE_TASKS_ENTRY_H_
#define LENGTHWISE_TASKS_ENTRY_H_

#include <memory>
#include <string>

#include "catalogue/entry.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

struct TaskEntry : catalogue::Entry {
  TaskKind kind = TaskKind::kTransduction;
  // "regular", "deterministic context-free", "context-sensitive"; empty where the hierarchy does
  // not apply.
  std::string chomsky_level;
  // Token accuracy of random guessing with the default parameters, 0 to 1, as the task's paper
  // states it.
  double random_accuracy = 0;
  // Whether the target is the same for every order of the input: such a task needs no positional
  // information.
  bool permutation_invariant = false;
  // `parameters` come from catalogue::Resolve with this entry.
  std::unique_ptr<Task> (*create)(const catalogue::Parameters& parameters) = nullptr;
  // What the lengths of its evaluation are, in a table's heading and on a figure's axis.
  std::string axis = "length";
  std::string axis_title = "input length";
  // What the accuracy of an evaluation is, in a table's title and on a figure's axis.
  std::string accuracy_title = "token accuracy";
};

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_ENTRY_H_
