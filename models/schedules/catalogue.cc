#include "models/schedules/catalogue.h"

namespace lengthwise::models {

// The schedules' own files define these.
ScheduleEntry ConstantEntry();
ScheduleEntry PlateauEntry();
ScheduleEntry WarmupCosineEntry();

// In display order.
absl::Span<const ScheduleEntry* const> ScheduleEntries() {
  static const auto& entries = *new std::vector<const ScheduleEntry*>{
      new ScheduleEntry(ConstantEntry()), new ScheduleEntry(PlateauEntry()),
      new ScheduleEntry(WarmupCosineEntry())};
  return entries;
}

absl::Status Schedule::Restore(absl::string_view state) {
  if (state.empty()) return absl::OkStatus();
  return absl::DataLossError("the state belongs to another learning-rate schedule");
}

namespace {

std::unique_ptr<Schedule> CreateConstant(const catalogue::Parameters& parameters,
                                         const ScheduleContext& context) {
  return std::make_unique<Schedule>();
}

}  // namespace

ScheduleEntry ConstantEntry() {
  return {{.name = "constant",
           .title = "constant",
           .documentation = "The learning rate does not change."},
          /*check=*/nullptr,
          CreateConstant};
}

}  // namespace lengthwise::models
