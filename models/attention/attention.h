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

// Attention of block `block`: softmax(q k^T / sqrt(dh) + LogitTerm) v, [P, B, n, d]. `qkv` [P, B,
// n, 3 d] holds each token's query, key and value, each split into `heads` heads (feature = head *
// dh + dimension). The encoding rotates queries and keys and adds its term. Every token attends to
// all tokens unless the encoding masks them.
//
// If `maps` is null and CanFuse (fused.h) allows it, uses the fused kernels. They keep n numbers
// for each sequence and head for the backward pass, and hold only a few rows of n numbers at a
// time.
at::Tensor Attend(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                  int64_t heads, const at::Tensor& positions, const at::Tensor& qkv,
                  AttentionMaps* maps);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_
