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

// Not of text, whose steps have examples of many lengths (text_examples.h). A function of the
// training's fields, of which schedule_seed decides what the members of a pack share, and of the
// member's data seed: a resumed trial sees it again.
class BatchSchedule {
 public:
  // `weights`, one for each of training.lengths, says how likely a step has that length; empty:
  // all are as likely.
  explicit BatchSchedule(const v1::Training& training, const std::vector<int64_t>& weights = {});

  // The length asked for at step `step` (from 1). One for the whole batch: uniform in
  // training.lengths (randomized positional encodings, appendix B), weighted, or as the data set
  // has it.
  int64_t LengthOfStep(int64_t step) const;

  // The samples of the step for a member: new ones, or examples of its data set, in the order that
  // its data seed decides.
  SampleAddresses SamplesOfStep(int64_t step, uint64_t data_seed) const;

  // Of the data set of a member.
  uint64_t DataSetSeed(uint64_t data_seed) const { return data_set_seed_.value_or(data_seed); }

  // 0 where every step draws new examples.
  int64_t steps_per_epoch() const { return data_set_.has_value() ? data_set_->Batches() : 0; }

 private:
  v1::LengthRange lengths_;
  int64_t batch_size_;
  uint64_t schedule_seed_;
  std::optional<uint64_t> data_set_seed_;
  std::optional<tasks::DataSet> data_set_;
  // Sums of the weights up to and with each length; empty without weights.
  std::vector<int64_t> weights_;
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_BATCH_SCHEDULE_H_
