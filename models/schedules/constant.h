// The learning rate as it is.
#ifndef LENGTHWISE_MODELS_SCHEDULES_CONSTANT_H_
#define LENGTHWISE_MODELS_SCHEDULES_CONSTANT_H_

#include "models/schedules/catalogue.h"

namespace lengthwise::models {

const ScheduleEntry& ConstantEntry();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_SCHEDULES_CONSTANT_H_
