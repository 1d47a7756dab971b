// The attention of attention.h on a GPU's tensor cores: products of bfloat16 with sums in float32,
// for 8 heads of 8 numbers and up to 128 tokens. Everything else uses LibTorch's operators.
//
// Relative positions need no R. By the addition theorems, (q_i + w) . PE(p_j - p_i) W_R is the
// product of PE(p_j) with q_i + w, projected by the head's columns of W_R and rotated by p_i.
// So all sequences and heads of a member share the keys' sinusoids, a logit is one product of depth
// 8 + 64, and only q, k and v are read for each sequence.
//
// Rotated queries and keys, sinusoids, probabilities and gradients of logits are rounded to
// bfloat16 before products. From the formula in double precision, outputs and gradients differ by
// up to 1e-2 (root mean square; tensor_attention_simt_test.cc).
//
// There are no atomic operations; sums have an order that depends on the shape of one member. So
// the bits are the same from run to run, alone and in a pack.
#ifndef LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_CUDA_H_
#define LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_CUDA_H_

#include <cstdint>

#include "models/kernels/attention.h"
#include "models/kernels/bfloat16.h"

namespace lengthwise::kernels {

constexpr int64_t kTensorHeads = 8, kTensorHeadSize = 8;
constexpr int64_t kTensorModel = kTensorHeads * kTensorHeadSize;
constexpr int64_t kMostTensorTokens = 128;

// Members, sequences of each, and tokens of each sequence.
struct TensorShape {
  int64_t members = 1;
  int64_t sequences = 1;
  int64_t tokens = 1;
};

// Device memory; arrays of bfloat16 begin at multiples of 16 bytes.
struct TensorAttentionInputs {
  TensorShape shape;
  const BFloat16* qkv = nullptr;  // [P, B, n, 3, H, dh]
  // As in AttentionTerms: A and rotation. Neither is given where sinusoids are.
  const float* additive = nullptr;
  bool additive_shared = false;
  const float* rotation = nullptr;
  // For relative positions: PE(p) [P, n, 64] (encodings/sinusoids.h), W_R [P, 64, 64], u and w.
  const BFloat16* sinusoids = nullptr;
  const BFloat16* projection = nullptr;
  const float* content_bias = nullptr;
  const float* position_bias = nullptr;
  int64_t bias_stride = kTensorModel;
};

// Overwritten. A null pointer is a gradient that is not wanted.
struct TensorAttentionGradients {
  BFloat16* qkv = nullptr;
  float* additive = nullptr;    // [P, H, n, n]
  float* projection = nullptr;  // [P, 64, 64]
  // [P, H, dh], without gaps.
  float* content_bias = nullptr;
  float* position_bias = nullptr;
};

// Both put their kernels on `stream`, a cudaStream_t of the current device (null: the default one),
// and do not wait for them. They return null, or why a kernel could not be launched.
//
// `output` is [P, B, n, H, dh]. `log_sum_exp`, [P, B, H, n], has logarithms to base 2; null if no
// backward pass follows.
const char* TensorAttentionForwardCuda(const TensorAttentionInputs& inputs, BFloat16* output,
                                       float* log_sum_exp, void* stream);

// `workspace` has TensorAttentionWorkspace floats; it may be used again for what follows on the
// stream.
const char* TensorAttentionBackwardCuda(const TensorAttentionInputs& inputs, const BFloat16* output,
                                        const BFloat16* output_gradient, const float* log_sum_exp,
                                        const TensorAttentionGradients& gradients, float* workspace,
                                        void* stream);

// For partial sums over sequences.
int64_t TensorAttentionWorkspace(const TensorAttentionInputs& inputs, bool additive_gradient);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TENSOR_ATTENTION_CUDA_H_
