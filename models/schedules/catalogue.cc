#include "models/schedules/catalogue.h"

namespace lengthwise::models {

// All schedules, in display order. Each line declares the function that a schedule's file defines,
// and lists its entry.
// clang-format off
#define LENGTHWISE_SCHEDULES(SCHEDULE) \
  SCHEDULE(Constant) \
  SCHEDULE(Plateau) \
  SCHEDULE(WarmupCosine)
// clang-format on

#define LENGTHWISE_DECLARE(Name) ScheduleEntry Name##Entry();
LENGTHWISE_SCHEDULES(LENGTHWISE_DECLARE)
#undef LENGTHWISE_DECLARE

absl::Span<const ScheduleEntry* const> ScheduleEntries() {
#define LENGTHWISE_ENTRY(Name) new ScheduleEntry(Name##Entry()),
  static const auto& entries =
      *new std::vector<const ScheduleEntry*>{LENGTHWISE_SCHEDULES(LENGTHWISE_ENTRY)};
#undef LENGTHWISE_ENTRY
  return entries;
}

absl::Status Schedule::Restore(absl::string_view state) {
  if (state.empty()) return absl::OkStatus();
  return absl::DataLossError("the state belongs to another learning-rate schedule");
}

namespace {

class Constant : public Schedule {
 public:
  double Factor(int64_t step) const override { return 1; }
};

std::unique_ptr<Schedule> CreateConstant(const catalogue::Parameters& parameters,
                                         const ScheduleContext& context) {
  return std::make_unique<Constant>();
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
