#include "worker/training/batch.h"

#include <algorithm>
#include <numeric>

#include "absl/types/span.h"

namespace lengthwise::worker::training {

int64_t SequenceTokens(const tasks::TransductionTask& task, int64_t n) {
  return task.InputLength(n) + task.OutputLength(n);
}

std::vector<uint32_t> RowsFrom(int64_t first, int64_t count) {
  std::vector<uint32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(first));
  return rows;
}

void AppendSamples(const tasks::TransductionTask& task, const SampleAddresses& addresses, int64_t n,
                   Batch& batch) {
  const auto inputs = static_cast<size_t>(task.InputLength(n));
  const auto outputs = static_cast<size_t>(task.OutputLength(n));
  const size_t count = addresses.rows.size();
  std::vector<int32_t> input_tokens(count * inputs);
  std::vector<int32_t> targets(count * outputs);
  const size_t old_outputs = batch.mask.size();
  batch.mask.resize(old_outputs + count * outputs);
  tasks::SampleRows(task, addresses.seed, addresses.purpose, addresses.step, n, addresses.rows,
                    {.inputs = absl::MakeSpan(input_tokens),
                     .targets = absl::MakeSpan(targets),
                     .mask = absl::MakeSpan(batch.mask).subspan(old_outputs)});

  batch.tokens.reserve(batch.tokens.size() + count * (inputs + outputs));
  for (size_t row = 0; row < count; ++row) {
    const auto begin = input_tokens.begin() + static_cast<std::ptrdiff_t>(row * inputs);
    batch.tokens.insert(batch.tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(inputs));
    batch.tokens.insert(batch.tokens.end(), outputs, task.input_size());
  }
  batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
  batch.rows += static_cast<int64_t>(count);
  batch.tokens_per_row = static_cast<int64_t>(inputs + outputs);
  batch.outputs_per_row = static_cast<int64_t>(outputs);
}

}  // namespace lengthwise::worker::training
