// Addition and multiplication of binary numbers, lowest bit first, as in the reference code.
#ifndef LENGTHWISE_TASKS_CHOMSKY_BINARY_OPERATION_H_
#define LENGTHWISE_TASKS_CHOMSKY_BINARY_OPERATION_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& BinaryAddition();
const TaskEntry& BinaryMultiplication();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_BINARY_OPERATION_H_
