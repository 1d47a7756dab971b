// Fused attention, which stores no [n, n] tensor of logits. Wraps the CPU and CUDA kernels of
// models/kernels as an operator that LibTorch can differentiate.
#ifndef LENGTHWISE_MODELS_ATTENTION_FUSED_H_
#define LENGTHWISE_MODELS_ATTENTION_FUSED_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"

namespace lengthwise::models {

// Returns true if attention uses FusedAttention for tensors of this type and device and heads of
// `head_size` numbers. The type must be float32 or bfloat16. On a GPU, it also needs compute
// capability 8.0 or newer, heads of at most 64 and a program built with nvcc. Returns false if the
// thread's KernelChoice (layers/kernel_choice.h) selects LibTorch's operators.
bool CanFuse(const at::Tensor& tensor, int64_t head_size);

// Returns the attention [P, B, n, d] of `heads` heads. `qkv` [P, B, n, 3 d] concatenates queries,
// keys and values. `terms` are an encoding's terms for all n tokens. Differentiable in `qkv` and
// the terms. Besides inputs and output, it saves n numbers per sequence and head for the backward
// pass. Sums are accumulated in float32, also for bfloat16. On a GPU, it runs on LibTorch's current
// stream.
at::Tensor FusedAttention(const at::Tensor& qkv, int64_t heads, const AttentionTerms& terms);

// The same for the queries of tokens first .. first + count - 1 only: [P, B, count, d]. `terms` are
// for these tokens. Not differentiable.
at::Tensor FusedAttentionRows(const at::Tensor& qkv, int64_t heads, int64_t first, int64_t count,
                              const AttentionTerms& terms);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_FUSED_H_
