// Linear warm-up, then half a cosine down (Loshchilov and Hutter 2017; decimal addition, Table
// E.1).
#ifndef LENGTHWISE_MODELS_SCHEDULES_WARMUP_COSINE_H_
#define LENGTHWISE_MODELS_SCHEDULES_WARMUP_COSINE_H_

#include "models/schedules/catalogue.h"

namespace lengthwise::models {

const ScheduleEntry& WarmupCosineEntry();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_SCHEDULES_WARMUP_COSINE_H_
