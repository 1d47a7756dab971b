// The five tasks on vectors of real numbers of the positional-attention paper.
#ifndef LENGTHWISE_TASKS_NUMERIC_ALGORITHMIC_H_
#define LENGTHWISE_TASKS_NUMERIC_ALGORITHMIC_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::numeric {

// All have the kind TaskKind::kRegression.
const TaskEntry& CumulativeSum();
const TaskEntry& CumulativeMin();
const TaskEntry& CumulativeMedian();
const TaskEntry& CumulativeMaxSumSubarray();
const TaskEntry& Sorting();

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_ALGORITHMIC_H_
