// Finds the position at which a walk on a cycle ends.
#ifndef LENGTHWISE_TASKS_CHOMSKY_CYCLE_NAVIGATION_H_
#define LENGTHWISE_TASKS_CHOMSKY_CYCLE_NAVIGATION_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& CycleNavigation();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_CYCLE_NAVIGATION_H_
