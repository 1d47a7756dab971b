#include "tasks/regression.h"

#include <cstddef>

namespace lengthwise::tasks {

void SampleBatch(const RegressionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
                 const Domain& domain, uint32_t first, uint32_t count, RegressionBatch batch) {
  const auto rows = static_cast<size_t>(task.Rows(domain.n));
  for (uint32_t i = 0; i < count; ++i) {
    random::Stream stream(seed, purpose, step, first + i);
    RegressionSample sample{.inputs = batch.inputs.subspan(i * rows, rows),
                            .targets = batch.targets.subspan(i * rows, rows)};
    if (!batch.tokens.empty()) sample.tokens = batch.tokens.subspan(i * rows, rows);
    task.Sample(domain, stream, sample);
  }
}

}  // namespace lengthwise::tasks
