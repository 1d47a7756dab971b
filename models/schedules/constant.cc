#include "models/schedules/constant.h"

namespace lengthwise::models {
namespace {

class Constant : public Schedule {
 public:
  double Factor(int64_t step) const override { return 1; }
};

std::unique_ptr<Schedule> Create(const catalogue::Parameters& parameters,
                                 const ScheduleContext& context) {
  return std::make_unique<Constant>();
}

}  // namespace

const ScheduleEntry& ConstantEntry() {
  static const ScheduleEntry& entry =
      *new ScheduleEntry{{.name = "constant",
                          .title = "constant",
                          .documentation = "The learning rate stays what it is."},
                         /*check=*/nullptr,
                         Create};
  return entry;
}

}  // namespace lengthwise::models
