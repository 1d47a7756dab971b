// Finds the masked bit of a string that is written twice.
#ifndef LENGTHWISE_TASKS_CHOMSKY_MISSING_DUPLICATE_STRING_H_
#define LENGTHWISE_TASKS_CHOMSKY_MISSING_DUPLICATE_STRING_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& MissingDuplicateString();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_MISSING_DUPLICATE_STRING_H_
