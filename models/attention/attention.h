// Scaled dot-product attention with an encoding's hooks (Vaswani et al. 2017, section 3.2.1).
#ifndef LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_
#define LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Where a forward pass keeps what attention computed; [P, B, H, n, n], rows are queries.
struct AttentionMaps {
  at::Tensor logits;
  at::Tensor probabilities;
};

// softmax(q k^T / sqrt(dh) + LogitTerm) v of block `block` for queries, keys and values [P, B, n,
// d], which it splits into `heads` heads (feature = head * dh + dimension) and lets the encoding
// rotate: [P, B, n, d]. Every token attends to all.
//
// This function is the seam for fused kernels. Where `maps` is null it may take one, and then needs
// no memory in n^2 unless the encoding's term is itself [n, n].
at::Tensor Attend(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                  int64_t heads, const at::Tensor& positions, const at::Tensor& queries,
                  const at::Tensor& keys, const at::Tensor& values, AttentionMaps* maps);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_
