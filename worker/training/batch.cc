#include "worker/training/batch.h"

#include <algorithm>

#include "absl/types/span.h"

namespace lengthwise::worker::training {

int64_t SequenceTokens(const tasks::TransductionTask& task, int64_t n) {
  return task.InputLength(n) + task.OutputLength(n);
}

void AppendSamples(const tasks::TransductionTask& task, uint64_t seed, random::Purpose purpose,
                   int64_t step, int64_t n, int64_t first_row, int64_t rows, Batch& batch) {
  const auto inputs = static_cast<size_t>(task.InputLength(n));
  const auto outputs = static_cast<size_t>(task.OutputLength(n));
  const auto count = static_cast<size_t>(rows);
  std::vector<int32_t> input_tokens(count * inputs);
  std::vector<int32_t> targets(count * outputs);
  const size_t old_outputs = batch.mask.size();
  batch.mask.resize(old_outputs + count * outputs);
  tasks::SampleBatch(task, seed, purpose, static_cast<uint64_t>(step), n,
                     static_cast<uint32_t>(first_row), static_cast<uint32_t>(rows),
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
  batch.rows += rows;
  batch.tokens_per_row = static_cast<int64_t>(inputs + outputs);
  batch.outputs_per_row = static_cast<int64_t>(outputs);
}

}  // namespace lengthwise::worker::training
