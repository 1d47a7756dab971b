// Decimal addition as text (Zhou et al. 2024, "Transformers Can Achieve Length Generalization But
// Not Robustly").
#ifndef LENGTHWISE_TASKS_ADDITION_ADDITION_H_
#define LENGTHWISE_TASKS_ADDITION_ADDITION_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::addition {

// The task has the kind TaskKind::kText.
const TaskEntry& DecimalAddition();

}  // namespace lengthwise::tasks::addition

#endif  // LENGTHWISE_TASKS_ADDITION_ADDITION_H_
