// Learning-rate schedules: factors on the learning rate over time. A new schedule needs a file with
// its class and entry, and a line in catalogue.cc. No LibTorch.
#ifndef LENGTHWISE_MODELS_SCHEDULES_CATALOGUE_H_
#define LENGTHWISE_MODELS_SCHEDULES_CATALOGUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"

namespace lengthwise::models {

// Settings of the training that schedules use.
struct ScheduleContext {
  // Learning rate before the schedule's factor.
  double learning_rate = 0;
  int64_t steps = 0;
  // Steps per pass over a fixed data set; 0 if every step draws new examples.
  int64_t steps_per_epoch = 0;
};

// Schedule of one trial. Not thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;

  // Factor for the update of step `step`, from 1. All earlier losses must have been observed, up to
  // the last step for which AwaitsLoss is true. The base class is the constant schedule.
  virtual double Factor(int64_t step) const { return 1; }

  // Returns true if the loss of `step` may change the next step's factor.
  virtual bool AwaitsLoss(int64_t step) const { return false; }

  // Reports the mean loss of the step's batch. Called for every step once, in order.
  virtual void Observe(int64_t step, double loss) {}

  // State that a resumed trial needs besides the step, as text; empty if none.
  virtual std::string State() const { return {}; }
  // Returns DATA_LOSS for text that State never returns.
  virtual absl::Status Restore(absl::string_view state);
};

struct ScheduleEntry : catalogue::Entry {
  // Appends problems of the combination, with fields under `path`. The context's learning rate is
  // not set. May be null.
  void (*check)(const catalogue::Parameters& parameters, const ScheduleContext& context,
                absl::string_view path, std::vector<catalogue::Problem>& problems) = nullptr;
  // `parameters` come from catalogue::Resolve with this entry.
  std::unique_ptr<Schedule> (*create)(const catalogue::Parameters& parameters,
                                      const ScheduleContext& context) = nullptr;
};

// All entries. They live forever.
absl::Span<const ScheduleEntry* const> ScheduleEntries();

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_SCHEDULES_CATALOGUE_H_
