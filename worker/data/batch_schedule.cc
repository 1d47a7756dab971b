#include "worker/data/batch_schedule.h"

#include <algorithm>
#include <numeric>

#include "random/stream.h"

namespace lengthwise::worker::data {

BatchSchedule::BatchSchedule(const v1::Training& training, const std::vector<int64_t>& weights)
    : lengths_(training.lengths()),
      batch_size_(training.batch_size()),
      schedule_seed_(training.schedule_seed()),
      weights_(weights.size()) {
  std::partial_sum(weights.begin(), weights.end(), weights_.begin());
  if (training.has_data_set_seed()) data_set_seed_ = training.data_set_seed();
  if (training.examples() == 0 || training.has_packing()) return;
  data_set_.emplace(tasks::DataSet::Shape{.examples = training.examples(),
                                          .batch_size = batch_size_,
                                          .min_length = lengths_.min(),
                                          .max_length = lengths_.max()});
}

int64_t BatchSchedule::LengthOfStep(int64_t step) const {
  if (data_set_.has_value()) return data_set_->BatchOfStep(schedule_seed_, step).length;
  random::Stream stream(schedule_seed_, random::Purpose::kLengths, static_cast<uint64_t>(step));
  if (weights_.empty()) return stream.Between(lengths_.min(), lengths_.max());
  const int64_t any = stream.Between(0, weights_.back() - 1);
  return lengths_.min() +
         (std::upper_bound(weights_.begin(), weights_.end(), any) - weights_.begin());
}

SampleAddresses BatchSchedule::SamplesOfStep(int64_t step, uint64_t data_seed) const {
  if (!data_set_.has_value()) {
    return {.seed = data_seed,
            .schedule_seed = schedule_seed_,
            .purpose = random::Purpose::kTrainingSamples,
            .step = static_cast<uint64_t>(step),
            .rows = RowsFrom(0, batch_size_)};
  }
  const tasks::DataSet::Batch batch = data_set_->BatchOfStep(schedule_seed_, step);
  return {.seed = DataSetSeed(data_seed),
          .schedule_seed = schedule_seed_,
          .purpose = random::Purpose::kDataSet,
          .step = static_cast<uint64_t>(batch.length),
          .rows = data_set_->Examples(batch, data_seed)};
}

}  // namespace lengthwise::worker::data
