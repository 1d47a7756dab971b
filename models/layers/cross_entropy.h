// Computes the loss and accuracy of classes.
#ifndef LENGTHWISE_MODELS_LAYERS_CROSS_ENTROPY_H_
#define LENGTHWISE_MODELS_LAYERS_CROSS_ENTROPY_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Measures per member, [P].
struct ClassMeasures {
  // Mean soft-max cross-entropy over all outputs, in nats. Differentiable in the logits.
  at::Tensor losses;
  // Share of the outputs in the mask that are right, in double precision: the largest logit, the
  // first if tied, is that of their class.
  at::Tensor accuracies;
};

// Measures `logits` [P, B, m, O] against `classes` int64 [P, B, m], each 0 .. O - 1. `mask` is bool
// [P, B, m]. Throws c10::Error for other shapes. In float32 it reads the logits once forward and
// once backward.
ClassMeasures CrossEntropy(const at::Tensor& logits, const at::Tensor& classes,
                           const at::Tensor& mask);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_CROSS_ENTROPY_H_
