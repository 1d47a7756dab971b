#include "models/schedules/catalogue.h"

#include "models/schedules/constant.h"
#include "models/schedules/plateau.h"
#include "models/schedules/warmup_cosine.h"

namespace lengthwise::models {

absl::Span<const ScheduleEntry* const> ScheduleEntries() {
  static const auto& entries = *new std::vector<const ScheduleEntry*>{
      &ConstantEntry(),
      &PlateauEntry(),
      &WarmupCosineEntry(),
  };
  return entries;
}

}  // namespace lengthwise::models
