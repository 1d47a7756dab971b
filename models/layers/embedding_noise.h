// Normally distributed noise on the embeddings of tokens: how much of it does what a model learned
// bear (relational reasoning on Latin squares, Figure 5)?
#ifndef LENGTHWISE_MODELS_LAYERS_EMBEDDING_NOISE_H_
#define LENGTHWISE_MODELS_LAYERS_EMBEDDING_NOISE_H_

#include "ATen/core/Tensor.h"
#include "models/layers/dropout.h"

namespace lengthwise::models {

// `embeddings` [P, B, n, d] of tokens, before any positional encoding, plus numbers from N(0, s^2)
// with s = numbers->embedding_noise. They are functions of seed, step and sequence; those of
// another deviation are a multiple of them. The embeddings themselves where `numbers` is null or
// asks for none.
at::Tensor AddEmbeddingNoise(const at::Tensor& embeddings, const DropoutNumbers* numbers);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_EMBEDDING_NOISE_H_
