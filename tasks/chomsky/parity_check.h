// Decides if a bit string has an odd number of ones.
#ifndef LENGTHWISE_TASKS_CHOMSKY_PARITY_CHECK_H_
#define LENGTHWISE_TASKS_CHOMSKY_PARITY_CHECK_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& ParityCheck();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_PARITY_CHECK_H_
