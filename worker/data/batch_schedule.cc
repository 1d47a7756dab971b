#include "worker/data/batch_schedule.h"

#include <algorithm>
#include <numeric>

#include "random/stream.h"
#include "specification/training_data.h"

namespace lengthwise::worker::data {

BatchSchedule::BatchSchedule(const v1::Training& training, const std::vector<int64_t>& weights)
    : training_(training), weights_(weights.size()) {
  std::partial_sum(weights.begin(), weights.end(), weights_.begin());
  if (training.examples() == 0 || training.has_packing()) return;
  data_set_.emplace(tasks::DataSet::Shape{.examples = training.examples(),
                                          .batch_size = training.batch_size(),
                                          .min_length = training.lengths().min(),
                                          .max_length = training.lengths().max()});
}

int64_t BatchSchedule::LengthOfStep(int64_t step) const {
  if (data_set_.has_value()) return data_set_->BatchOfStep(training_.schedule_seed(), step).length;
  random::Stream stream(training_.schedule_seed(), random::Purpose::kLengths,
                        static_cast<uint64_t>(step));
  const v1::LengthRange& lengths = training_.lengths();
  if (weights_.empty()) return stream.Between(lengths.min(), lengths.max());
  const int64_t any = stream.Between(0, weights_.back() - 1);
  return lengths.min() +
         (std::upper_bound(weights_.begin(), weights_.end(), any) - weights_.begin());
}

SampleAddresses BatchSchedule::SamplesOfStep(int64_t step, uint64_t data_seed) const {
  if (!data_set_.has_value()) {
    return {.seed = data_seed,
            .schedule_seed = training_.schedule_seed(),
            .purpose = random::Purpose::kTrainingSamples,
            .step = static_cast<uint64_t>(step),
            .rows = RowsFrom(0, training_.batch_size())};
  }
  const tasks::DataSet::Batch batch = data_set_->BatchOfStep(training_.schedule_seed(), step);
  return {.seed = specification::DataSetSeed(training_, data_seed),
          .schedule_seed = training_.schedule_seed(),
          .purpose = random::Purpose::kDataSet,
          .step = static_cast<uint64_t>(batch.length),
          .rows = data_set_->Examples(batch, data_seed)};
}

}  // namespace lengthwise::worker::data
