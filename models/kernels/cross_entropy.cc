#include "models/kernels/cross_entropy.h"

#include <vector>

#include "models/kernels/cross_entropy_row-inl.h"

namespace lengthwise::kernels {

void CrossEntropy(const RowsShape& shape, const CrossEntropyInputs& inputs,
                  const CrossEntropyResult& result, const ParallelFor& parallel_for) {
  const RowChunks chunks(shape);
  // Each chunk's share of CrossEntropyResult::sums.
  std::vector<float> parts(static_cast<size_t>(3 * chunks.count()));
  chunks.ForEach(parallel_for, [&](const RowChunk& rows) {
    float* part = parts.data() + 3 * rows.number;
    for (int64_t r = rows.first; r < rows.first + rows.count; ++r) {
      const float* logits = inputs.logits + r * shape.width;
      const LogitsRow row = MeasureRow(logits, shape.width);
      result.log_sum_exp[r] = row.log_sum_exp;
      part[0] += row.log_sum_exp - logits[inputs.classes[r]];
      if (!inputs.mask[r]) continue;
      part[1] += row.largest == inputs.classes[r] ? 1.0F : 0.0F;
      part[2] += 1;
    }
  });
  chunks.Sum(parts, 3, result.sums);
}

void CrossEntropyBackward(const RowsShape& shape, const CrossEntropyInputs& inputs,
                          const float* log_sum_exp, const float* sum_gradients,
                          float* logits_gradient, const ParallelFor& parallel_for) {
  RowChunks(shape).ForEach(parallel_for, [&](const RowChunk& rows) {
    for (int64_t r = rows.first; r < rows.first + rows.count; ++r) {
      DifferentiateLogits(inputs.logits + r * shape.width, shape.width, inputs.classes[r],
                          log_sum_exp[r], sum_gradients[rows.member],
                          logits_gradient + r * shape.width);
    }
  });
}

}  // namespace lengthwise::kernels
