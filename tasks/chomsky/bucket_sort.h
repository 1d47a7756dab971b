// Sorts the input's tokens in ascending order.
#ifndef LENGTHWISE_TASKS_CHOMSKY_BUCKET_SORT_H_
#define LENGTHWISE_TASKS_CHOMSKY_BUCKET_SORT_H_

#include "tasks/entry.h"

namespace lengthwise::tasks::chomsky {

const TaskEntry& BucketSort();

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_BUCKET_SORT_H_
