// Soft-max cross-entropy of classes and the number of correct predictions, fused: one pass over the
// logits forward and one backward. Probabilities are not stored.
#ifndef LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_H_
#define LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// `logits` are [P, rows, width], where width is the number of classes.
struct CrossEntropyInputs {
  const float* logits = nullptr;
  const int64_t* classes = nullptr;  // [P, rows], 0 .. width - 1
  const bool* mask = nullptr;        // [P, rows]: rows that count for accuracy
};

struct CrossEntropyResult {
  float* log_sum_exp = nullptr;  // [P, rows]: input of the backward pass
  // Per member [P, 3]:
  // - the loss in nats: sum over all rows of log sum exp(logits) - logits[class];
  // - correct rows of the mask: the largest logit, the first of several, is the class's;
  // - rows of the mask, exact up to 2^24.
  //
  // Rows are added in an order that depends on their number alone.
  float* sums = nullptr;
};
void CrossEntropy(const RowsShape& shape, const CrossEntropyInputs& inputs,
                  const CrossEntropyResult& result, const ParallelFor& parallel_for);

// Computes the logits' gradient from `sum_gradients` [P], the gradient of each member's loss:
// (softmax(logits) - 1 at the class) times the member's.
void CrossEntropyBackward(const RowsShape& shape, const CrossEntropyInputs& inputs,
                          const float* log_sum_exp, const float* sum_gradients,
                          float* logits_gradient, const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_CROSS_ENTROPY_H_
