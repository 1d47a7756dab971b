// Tasks backed by files. A user's specification names `examples`; the files' contents and the
// networks then select one of the entries. Does not depend on LibTorch or gRPC.
#ifndef LENGTHWISE_TASKS_EXAMPLES_ENTRIES_H_
#define LENGTHWISE_TASKS_EXAMPLES_ENTRIES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tasks/entry.h"

namespace lengthwise::tasks::examples {

// `examples`: symbols in, symbols out. `examples_numbers`: numbers in, numbers out.
// `examples_text`: symbols that a causal language model continues. They need files, not only
// parameters, so TaskEntry::create is null.
const TaskEntry& Examples();
const TaskEntry& ExamplesNumbers();
const TaskEntry& ExamplesText();

// Returns true if the task is backed by files of examples.
bool IsExamples(absl::string_view name);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_ENTRIES_H_
