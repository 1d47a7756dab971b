// Finds the unknown in a bracketed equation, modulo a number.
#ifndef LENGTHWISE_TASKS_CHOMSKY_SOLVE_EQUATION_H_
#define LENGTHWISE_TASKS_CHOMSKY_SOLVE_EQUATION_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& SolveEquation();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_SOLVE_EQUATION_H_
