// Decimal addition as text.
#ifndef LENGTHWISE_TASKS_ADDITION_ADDITION_H_
#define LENGTHWISE_TASKS_ADDITION_ADDITION_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::addition {

// Of kind TaskKind::kText.
const TaskEntry& DecimalAddition();

}  // namespace lengthwise::tasks::addition

#endif  // LENGTHWISE_TASKS_ADDITION_ADDITION_H_
