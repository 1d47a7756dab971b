// Adds normally distributed noise to token embeddings, to measure how robust a trained model is
// (relational reasoning on Latin squares, Figure 5).
#ifndef LENGTHWISE_MODELS_LAYERS_EMBEDDING_NOISE_H_
#define LENGTHWISE_MODELS_LAYERS_EMBEDDING_NOISE_H_

#include "ATen/core/Tensor.h"
#include "models/layers/dropout.h"

namespace lengthwise::models {

// Returns `embeddings` [P, B, n, d], before any positional encoding, plus noise from N(0, s^2) with
// s = numbers->embedding_noise. The noise is s times a standard normal function of seed, step and
// sequence, so levels of noise differ only by a factor. Returns `embeddings` unchanged if `numbers`
// is null or s is 0.
at::Tensor AddEmbeddingNoise(const at::Tensor& embeddings, const DropoutNumbers* numbers);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_EMBEDDING_NOISE_H_
