// Attention that keeps no [n, n] tensor of a sequence: the kernels of models/kernels, for the CPU
// and for CUDA, as an operator that LibTorch can differentiate.
#ifndef LENGTHWISE_MODELS_ATTENTION_FUSED_H_
#define LENGTHWISE_MODELS_ATTENTION_FUSED_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"

namespace lengthwise::models {

// Returns true if attention over tensors like this, with heads of `head_size` numbers, uses
// FusedAttention: float32 and bfloat16 on the CPU; on a GPU of compute capability 8.0 or newer,
// heads of up to 64 in a program built with nvcc. False if the thread's KernelChoice
// (layers/kernel_choice.h) is LibTorch's operators.
bool CanFuse(const at::Tensor& tensor, int64_t head_size);

// Attention of `heads` heads over queries, keys and values [P, B, n, d], one behind the other in
// `qkv` [P, B, n, 3 d], with an encoding's terms for all tokens: [P, B, n, d]. Differentiable in
// `qkv` and the terms. Between the passes it keeps n numbers a sequence and head. Sums are float32,
// also of bfloat16. On a GPU everything is put on the stream that LibTorch uses there.
at::Tensor FusedAttention(const at::Tensor& qkv, int64_t heads, const AttentionTerms& terms);

// The same for the queries of tokens first .. first + count - 1, whose terms are given: [P, B,
// count, d]. Not differentiable.
at::Tensor FusedAttentionRows(const at::Tensor& qkv, int64_t heads, int64_t first, int64_t count,
                              const AttentionTerms& terms);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_FUSED_H_
