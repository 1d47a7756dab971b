// Determines the batch of each training step. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_BATCH_SCHEDULE_H_
#define LENGTHWISE_WORKER_DATA_BATCH_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/specification.pb.h"
#include "tasks/data_set.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// Schedule for all tasks except text, whose steps mix examples of many lengths (text_examples.h).
// It is a function of the training's fields and the member's data seed, so a resumed trial repeats
// it. training.schedule_seed decides everything that the members of a pack share.
class BatchSchedule {
 public:
  // `weights` has one entry per length in training.lengths: the relative probability that a step
  // has that length. Empty: uniform.
  explicit BatchSchedule(const v1::Training& training, const std::vector<int64_t>& weights = {});

  // Returns the length of step `step` (from 1), one for the whole batch: uniform in
  // training.lengths (randomized positional encodings, section 4), weighted, or given by the data
  // set.
  int64_t LengthOfStep(int64_t step) const;

  // Returns a member's samples for the step: new ones, or examples of its data set in an order
  // decided by its data seed.
  SampleAddresses SamplesOfStep(int64_t step, uint64_t data_seed) const;

 private:
  v1::Training training_;
  std::optional<tasks::DataSet> data_set_;
  // Cumulative weights, inclusive; empty without weights.
  std::vector<int64_t> weights_;
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_BATCH_SCHEDULE_H_
