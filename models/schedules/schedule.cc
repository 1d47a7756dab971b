#include "models/schedules/schedule.h"

namespace lengthwise::models {

absl::Status Schedule::Restore(absl::string_view state) {
  if (state.empty()) return absl::OkStatus();
  return absl::DataLossError("a state of another schedule of learning rates");
}

}  // namespace lengthwise::models
