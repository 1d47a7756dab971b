// Applies pushes and pops to a stack.
#ifndef LENGTHWISE_TASKS_CHOMSKY_STACK_MANIPULATION_H_
#define LENGTHWISE_TASKS_CHOMSKY_STACK_MANIPULATION_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& StackManipulation();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_STACK_MANIPULATION_H_
