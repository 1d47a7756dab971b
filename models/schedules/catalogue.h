// Schedules of learning rates: what a learning rate is multiplied by over time. A new one is a file
// with its class and its entry, and a line in catalogue.cc. No LibTorch.
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

// What a schedule must know of the training.
struct ScheduleContext {
  // Before the schedule's factor.
  double learning_rate = 0;
  int64_t steps = 0;
  // Steps in which a fixed data set is gone through once; 0 where every step draws new examples.
  int64_t steps_per_epoch = 0;
};

// Of one trial. Not thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;

  // Of the update of step `step`, from 1, when the losses of all steps before were observed.
  virtual double Factor(int64_t step) const = 0;

  // The mean loss of the step's batch; every step once, in order.
  virtual void Observe(int64_t step, double loss) {}

  // What a resumed trial needs beside the step, as text; empty where it needs nothing.
  virtual std::string State() const { return {}; }
  // DATA_LOSS for what State never gives.
  virtual absl::Status Restore(absl::string_view state);
};

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
