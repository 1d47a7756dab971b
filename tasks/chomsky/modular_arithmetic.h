// Evaluates an expression without brackets, modulo a number.
#ifndef LENGTHWISE_TASKS_CHOMSKY_MODULAR_ARITHMETIC_H_
#define LENGTHWISE_TASKS_CHOMSKY_MODULAR_ARITHMETIC_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& ModularArithmetic();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_MODULAR_ARITHMETIC_H_
