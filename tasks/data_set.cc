#include "tasks/data_set.h"

#include <algorithm>

#include "random/permutation.h"
#include "random/stream.h"

namespace lengthwise::tasks {
namespace {

// Packs epoch and length into one number below 2^56, the address of an order.
uint64_t OrderStep(int64_t epoch, int64_t length) {
  constexpr int kLengthBits = 20;  // a length is at most 100,000
  return (static_cast<uint64_t>(epoch) << kLengthBits) | static_cast<uint64_t>(length);
}

}  // namespace

int64_t DataSet::ExamplesOfLength(int64_t length) const {
  return shape_.examples / lengths() + (length - shape_.min_length < longer() ? 1 : 0);
}

int64_t DataSet::Batches() const {
  const int64_t examples = shape_.examples / lengths();
  return longer() * BatchesOf(examples + 1) + (lengths() - longer()) * BatchesOf(examples);
}

DataSet::Batch DataSet::BatchOfStep(uint64_t schedule_seed, int64_t step) const {
  const int64_t batches = Batches();
  Batch batch{.epoch = (step - 1) / batches};
  const random::Permutation order(schedule_seed, random::Purpose::kBatchOrder,
                                  static_cast<uint64_t>(batch.epoch),
                                  static_cast<uint64_t>(batches));
  // Batches are numbered by length, the lengths with an extra example first.
  auto number = static_cast<int64_t>(order(static_cast<uint64_t>((step - 1) % batches)));
  const int64_t examples = shape_.examples / lengths();
  const int64_t in_longer = longer() * BatchesOf(examples + 1);
  int64_t of_a_length = BatchesOf(examples + 1);
  batch.length = shape_.min_length;
  if (number >= in_longer) {
    number -= in_longer;
    batch.length += longer();
    of_a_length = BatchesOf(examples);
  }
  batch.length += number / of_a_length;
  batch.first = number % of_a_length * shape_.batch_size;
  batch.rows = std::min(shape_.batch_size, ExamplesOfLength(batch.length) - batch.first);
  return batch;
}

std::vector<uint32_t> DataSet::Examples(const Batch& batch, uint64_t data_seed) const {
  const random::Permutation order(data_seed, random::Purpose::kExampleOrder,
                                  OrderStep(batch.epoch, batch.length),
                                  static_cast<uint64_t>(ExamplesOfLength(batch.length)));
  std::vector<uint32_t> examples(static_cast<size_t>(batch.rows));
  for (size_t row = 0; row < examples.size(); ++row) {
    examples[row] = static_cast<uint32_t>(order(static_cast<uint64_t>(batch.first) + row));
  }
  return examples;
}

}  // namespace lengthwise::tasks
