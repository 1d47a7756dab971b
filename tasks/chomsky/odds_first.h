// Writes the tokens at odd positions, then those at even positions.
#ifndef LENGTHWISE_TASKS_CHOMSKY_ODDS_FIRST_H_
#define LENGTHWISE_TASKS_CHOMSKY_ODDS_FIRST_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& OddsFirst();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_ODDS_FIRST_H_
