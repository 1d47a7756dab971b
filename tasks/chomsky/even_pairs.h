// Decides if a bit string has an even number of unequal neighbours.
#ifndef LENGTHWISE_TASKS_CHOMSKY_EVEN_PAIRS_H_
#define LENGTHWISE_TASKS_CHOMSKY_EVEN_PAIRS_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& EvenPairs();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_EVEN_PAIRS_H_
