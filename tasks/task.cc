#include "tasks/task.h"

#include <algorithm>
#include <cstddef>

namespace lengthwise::tasks {

void TransductionTask::Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const {
  std::fill(mask.begin(), mask.end(), uint8_t{1});
}

void SampleBatch(const TransductionTask& task, uint64_t seed, random::Purpose purpose,
                 uint64_t step, int64_t n, uint32_t first_row, uint32_t rows,
                 TransductionBatch batch) {
  const auto input_length = static_cast<size_t>(task.InputLength(n));
  const auto output_length = static_cast<size_t>(task.OutputLength(n));
  for (uint32_t row = 0; row < rows; ++row) {
    random::Stream stream(seed, purpose, step, first_row + row);
    const auto target = batch.targets.subspan(row * output_length, output_length);
    task.Sample(n, stream, batch.inputs.subspan(row * input_length, input_length), target);
    task.Mask(target, batch.mask.subspan(row * output_length, output_length));
  }
}

}  // namespace lengthwise::tasks
