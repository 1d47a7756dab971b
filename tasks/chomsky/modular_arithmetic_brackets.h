// Evaluates a bracketed expression, modulo a number.
#ifndef LENGTHWISE_TASKS_CHOMSKY_MODULAR_ARITHMETIC_BRACKETS_H_
#define LENGTHWISE_TASKS_CHOMSKY_MODULAR_ARITHMETIC_BRACKETS_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& ModularArithmeticBrackets();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_MODULAR_ARITHMETIC_BRACKETS_H_
