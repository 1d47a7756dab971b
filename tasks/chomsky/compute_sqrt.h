// Computes the integer square root of a binary number.
#ifndef LENGTHWISE_TASKS_CHOMSKY_COMPUTE_SQRT_H_
#define LENGTHWISE_TASKS_CHOMSKY_COMPUTE_SQRT_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& ComputeSqrt();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_COMPUTE_SQRT_H_
