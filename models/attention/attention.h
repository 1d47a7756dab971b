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

// softmax(q k^T / sqrt(dh) + LogitTerm) v of block `block`: [P, B, n, d]. `qkv` [P, B, n, 3 d] are
// the queries, keys and values of every token, which are split into `heads` heads each (feature =
// head * dh + dimension); the encoding rotates them and adds its term. Every token attends to all.
//
// Where `maps` is null, float32 and bfloat16 on the CPU take a fused kernel: for each sequence and head, it
// keeps n numbers for the backward pass and a few rows of n at a time.
at::Tensor Attend(const Encoding& encoding, const ParameterSet& parameters, int64_t block,
                  int64_t heads, const at::Tensor& positions, const at::Tensor& qkv,
                  AttentionMaps* maps);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_ATTENTION_H_
