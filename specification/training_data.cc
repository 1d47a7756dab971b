#include "specification/training_data.h"

#include "tasks/data_set.h"

namespace lengthwise::specification {

int64_t StepsPerEpoch(const v1::Training& training) {
  // The number of text examples in a step varies with how many fit its sequences.
  if (training.has_packing()) return 0;
  const v1::LengthRange& lengths = training.lengths();
  const int64_t count = int64_t{lengths.max()} - lengths.min() + 1;
  if (count < 1 || training.examples() < count || training.batch_size() < 1) return 0;
  return tasks::DataSet({.examples = training.examples(),
                         .batch_size = training.batch_size(),
                         .min_length = lengths.min(),
                         .max_length = lengths.max()})
      .Batches();
}

}  // namespace lengthwise::specification
