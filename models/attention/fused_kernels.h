// Runs the attention kernels for a tensor's device and type; FusedAttention's two passes use them.
// Autograd records nothing here.
#ifndef LENGTHWISE_MODELS_ATTENTION_FUSED_KERNELS_H_
#define LENGTHWISE_MODELS_ATTENTION_FUSED_KERNELS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"

namespace lengthwise::models {

// Attention of queries first .. first + count - 1 of `qkv` [P, B, n, 3 d] to all its keys and
// values. All tensors are contiguous; terms are float32.
struct FusedCall {
  const at::Tensor& qkv;
  int64_t heads = 1;
  int64_t first = 0;
  int64_t count = 0;
  const AttentionTerms& terms;
};

// Writes `output` [P, B, count, d] and, unless undefined, `log_sum_exp` [P, B, H, count], float32.
void RunForward(const FusedCall& call, at::Tensor& output, at::Tensor& log_sum_exp);

// Gradients to compute. Undefined tensors of terms are skipped. `additive` is [P, H, n, n] even if
// members share the term.
struct FusedGradients {
  at::Tensor qkv, additive, relative, content_bias, position_bias;
};
void RunBackward(const FusedCall& call, const at::Tensor& output, const at::Tensor& output_gradient,
                 const at::Tensor& log_sum_exp, FusedGradients& gradients);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_FUSED_KERNELS_H_
