// Writes the input string twice.
#ifndef LENGTHWISE_TASKS_CHOMSKY_DUPLICATE_STRING_H_
#define LENGTHWISE_TASKS_CHOMSKY_DUPLICATE_STRING_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& DuplicateString();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_DUPLICATE_STRING_H_
