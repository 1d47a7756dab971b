// The tasks that are files. A specification names `examples`; what the files hold and which
// networks are asked decide which of the entries stands for it. No LibTorch, no gRPC.
#ifndef LENGTHWISE_TASKS_EXAMPLES_ENTRIES_H_
#define LENGTHWISE_TASKS_EXAMPLES_ENTRIES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tasks/entry.h"

namespace lengthwise::tasks::examples {

// `examples`: symbols in, symbols out. `examples_numbers`: numbers in, numbers out.
// `examples_text`: symbols that a causal language model continues. None can be created of its
// parameters alone: TaskEntry::create is null.
const TaskEntry& Examples();
const TaskEntry& ExamplesNumbers();
const TaskEntry& ExamplesText();

// Whether a task's name is that of a file of examples.
bool IsExamples(absl::string_view name);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_ENTRIES_H_
