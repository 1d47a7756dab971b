// Soft-max cross-entropy of classes and how many of them are right, in one pass over the logits
// each way: probabilities are not kept.
#ifndef LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_H_
#define LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// Of [P, rows, width] logits, a width of classes.
struct CrossEntropyInputs {
  const float* logits = nullptr;
  const int64_t* classes = nullptr;  // [P, rows], 0 .. width - 1
  const bool* mask = nullptr;        // [P, rows]
};

struct CrossEntropyResult {
  float* log_sum_exp = nullptr;  // [P, rows]: what the backward pass needs
  // [P, 3]: the sum over all rows of log sum exp(logits) - logits[class], nats; the rows of the
  // mask whose largest logit, the first of several, is the class's; and the rows of the mask, exact
  // up to 2^24. Sums are made in an order that depends on the number of rows alone.
  float* sums = nullptr;
};
void CrossEntropy(const RowsShape& shape, const CrossEntropyInputs& inputs,
                  const CrossEntropyResult& result, const ParallelFor& parallel_for);

// The gradient of the logits from those of the members' sums of losses, `sum_gradients` [P]:
// softmax(logits) less 1 at the class, times the member's.
void CrossEntropyBackward(const RowsShape& shape, const CrossEntropyInputs& inputs,
                          const float* log_sum_exp, const float* sum_gradients,
                          float* logits_gradient, const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_H_
