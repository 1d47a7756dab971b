// The loss of classes.
#ifndef LENGTHWISE_MODELS_LAYERS_CROSS_ENTROPY_H_
#define LENGTHWISE_MODELS_LAYERS_CROSS_ENTROPY_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Of each member, [P].
struct ClassMeasures {
  // Mean soft-max cross-entropy over all outputs, nats; differentiable by the logits.
  at::Tensor losses;
  // Share of the outputs that the mask counts whose largest logit, the first of several, is their
  // class's; double.
  at::Tensor accuracies;
};

// Of `logits` [P, B, m, O] with `classes` int64 [P, B, m], all of them 0 .. O - 1, and `mask` bool
// [P, B, m]. Throws c10::Error for other shapes. For float32 in one pass over the logits each way.
ClassMeasures CrossEntropy(const at::Tensor& logits, const at::Tensor& classes,
                           const at::Tensor& mask);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_CROSS_ENTROPY_H_
