// All tasks by name. A new task is one file and one line in all_tasks.h (recipe: CONTRIBUTING.md).
#ifndef LENGTHWISE_TASKS_CATALOGUE_H_
#define LENGTHWISE_TASKS_CATALOGUE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "tasks/entry.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

// Sorted by level (regular, deterministic context-free, context-sensitive, none), then name. Static
// lifetime.
absl::Span<const TaskEntry* const> TaskEntries();

// TaskEntries() and the tasks backed by files of examples (tasks/examples/entries.h), which
// CreateTask cannot create. Static lifetime.
absl::Span<const TaskEntry* const> EveryTaskEntry();

// Searches EveryTaskEntry(). Null for an unknown name.
const TaskEntry* FindTask(absl::string_view name);

// NOT_FOUND with a suggestion for an unknown name; INVALID_ARGUMENT for wrong parameters.
absl::StatusOr<std::unique_ptr<Task>> CreateTask(absl::string_view name,
                                                 const catalogue::Parameters& given);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_CATALOGUE_H_
