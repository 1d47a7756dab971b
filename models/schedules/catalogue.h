// All learning-rate schedules by name. A new one is a file with its entry and its class, and a line
// in catalogue.cc. No LibTorch.
#ifndef LENGTHWISE_MODELS_SCHEDULES_CATALOGUE_H_
#define LENGTHWISE_MODELS_SCHEDULES_CATALOGUE_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/schedules/schedule.h"

namespace lengthwise::models {

struct ScheduleEntry : catalogue::Entry {
  // Appends what is wrong with the combination, fields under `path`; the learning rate is not set.
  // May be null.
  void (*check)(const catalogue::Parameters& parameters, const ScheduleContext& context,
                absl::string_view path, std::vector<catalogue::Problem>& problems) = nullptr;
  // `parameters` come from catalogue::Resolve with this entry.
  std::unique_ptr<Schedule> (*create)(const catalogue::Parameters& parameters,
                                      const ScheduleContext& context) = nullptr;
};

// Lives forever.
absl::Span<const ScheduleEntry* const> ScheduleEntries();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_SCHEDULES_CATALOGUE_H_
