// Lower when the loss no longer falls, as torch.optim.lr_scheduler.ReduceLROnPlateau (positional
// attention, appendix B).
#ifndef LENGTHWISE_MODELS_SCHEDULES_PLATEAU_H_
#define LENGTHWISE_MODELS_SCHEDULES_PLATEAU_H_

#include "models/schedules/catalogue.h"

namespace lengthwise::models {

const ScheduleEntry& PlateauEntry();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_SCHEDULES_PLATEAU_H_
