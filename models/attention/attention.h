// Scaled dot-product attention with an encoding's hooks (Vaswani et al. 2017, section 3.2.1).
#ifndef LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_
#define LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Attention of a forward pass: [P, B, H, n, n], rows are queries.
struct AttentionMaps {
  at::Tensor logits;
  at::Tensor probabilities;
};

// Attention of block `block`: softmax(q k^T / sqrt(dh) + LogitTerm) v, [P, B, n, d]. `given_qkv`
// [P, B, n, 3 d] holds each token's query, key and value, each split into `heads` heads (feature =
// head * dh + dimension). The encoding rotates queries and keys and adds its term. Every token
// attends to all tokens unless the encoding masks them. `given_positions` are [P, n], or [P, B, n]
// if sequences have their own.
//
// If `maps` is null and CanFuse allows it, uses the fused kernels. They keep n numbers for each
// sequence and head for the backward pass, and hold only a few rows of n numbers at a time.
at::Tensor Attend(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                  int64_t heads, const at::Tensor& given_positions, const at::Tensor& given_qkv,
                  AttentionMaps* maps);

// Fused attention stores no [n, n] tensor of logits. It wraps the kernels of models/kernels as
// operators that LibTorch can differentiate (fused.cc): FusedAttention on a CPU, TensorAttention on
// a GPU.

// Returns true if attention uses FusedAttention for tensors of this type and device: float32 or
// bfloat16 on a CPU. Returns false if the thread's KernelChoice (layers/kernel_choice.h) selects
// LibTorch's operators.
bool CanFuse(const at::Tensor& tensor);

// Returns the attention [P, B, n, d] of `heads` heads. `qkv` [P, B, n, 3 d] concatenates queries,
// keys and values. `terms` are an encoding's terms for all n tokens. Differentiable in `qkv` and
// the terms. Besides inputs and output, it saves n numbers per sequence and head for the backward
// pass. Sums are accumulated in float32, also for bfloat16.
at::Tensor FusedAttention(const at::Tensor& qkv, int64_t heads, const AttentionTerms& terms);

// Returns true if the kernels on tensor cores take `qkv`: bfloat16 on a GPU of compute capability
// 8.0 or newer, 8 heads of 8 numbers, at most 128 tokens, in a program built with nvcc. Returns
// false if the thread's KernelChoice selects LibTorch's operators.
bool CanUseTensorCores(const at::Tensor& qkv, int64_t heads);

// Returns true if the kernels on tensor cores take these terms of Encoding::TermsWithoutR.
bool HaveTensorKernels(const AttentionTerms& terms);

// The attention of CanUseTensorCores and HaveTensorKernels (kernels/tensor_attention_cuda.h), on
// LibTorch's current stream. Arguments and result are FusedAttention's.
at::Tensor TensorAttention(const at::Tensor& qkv, const AttentionTerms& terms);

// FusedAttention for the queries of tokens first .. first + count - 1 only: [P, B, count, d].
// `terms` are for these tokens. Not differentiable.
at::Tensor FusedAttentionRows(const at::Tensor& qkv, int64_t heads, int64_t first, int64_t count,
                              const AttentionTerms& terms);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_
