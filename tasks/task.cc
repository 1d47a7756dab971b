#include "tasks/task.h"

#include <algorithm>
#include <cstddef>

#include "tasks/regression.h"

namespace lengthwise::tasks {

void TransductionTask::Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const {
  std::fill(mask.begin(), mask.end(), uint8_t{1});
}

void SampleRows(const TransductionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
                int64_t n, absl::Span<const uint32_t> rows, TransductionBatch batch) {
  const auto input_length = static_cast<size_t>(task.InputLength(n));
  const auto output_length = static_cast<size_t>(task.OutputLength(n));
  for (size_t i = 0; i < rows.size(); ++i) {
    random::Stream stream(seed, purpose, step, rows[i]);
    const auto target = batch.targets.subspan(i * output_length, output_length);
    task.Sample(n, stream, batch.inputs.subspan(i * input_length, input_length), target);
    task.Mask(target, batch.mask.subspan(i * output_length, output_length));
  }
}

void SampleRows(const RegressionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
                const Domain& domain, absl::Span<const uint32_t> rows, RegressionBatch batch) {
  const auto length = static_cast<size_t>(task.Rows(domain.n));
  for (size_t i = 0; i < rows.size(); ++i) {
    random::Stream stream(seed, purpose, step, rows[i]);
    RegressionSample sample{.inputs = batch.inputs.subspan(i * length, length),
                            .targets = batch.targets.subspan(i * length, length)};
    if (!batch.tokens.empty()) sample.tokens = batch.tokens.subspan(i * length, length);
    task.Sample(domain, stream, sample);
  }
}

}  // namespace lengthwise::tasks
