// Reverses the input string.
#ifndef LENGTHWISE_TASKS_CHOMSKY_REVERSE_STRING_H_
#define LENGTHWISE_TASKS_CHOMSKY_REVERSE_STRING_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& ReverseString();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_REVERSE_STRING_H_
