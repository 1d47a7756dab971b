#include "models/optimizers/catalogue.h"

#include <vector>

#include "models/optimizers/adam.h"

namespace lengthwise::models {
namespace {

const catalogue::Entry& ConstantEntry() {
  static const catalogue::Entry& entry =
      *new catalogue::Entry{.name = "constant",
                            .title = "constant",
                            .documentation = "The learning rate stays what it is."};
  return entry;
}

}  // namespace

absl::Span<const catalogue::Entry* const> OptimizerEntries() {
  static const auto& entries = *new std::vector<const catalogue::Entry*>{
      &AdamEntry(),
  };
  return entries;
}

absl::Span<const catalogue::Entry* const> ScheduleEntries() {
  static const auto& entries = *new std::vector<const catalogue::Entry*>{
      &ConstantEntry(),
  };
  return entries;
}

}  // namespace lengthwise::models
