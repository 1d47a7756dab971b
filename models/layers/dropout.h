// Dropout and noise on embeddings, with addressed random numbers (random/stream.h): each number is
// a function of its place, so that a resumed, moved or packed trial drops and adds the same as an
// uninterrupted one.
#ifndef LENGTHWISE_MODELS_LAYERS_DROPOUT_H_
#define LENGTHWISE_MODELS_LAYERS_DROPOUT_H_

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "random/stream.h"

namespace lengthwise::models {

// Addresses of the random numbers for dropout and embedding noise in a forward pass.
struct DropoutNumbers {
  // One per member.
  std::vector<uint64_t> seeds;
  // kDropout with a training step, or kEvaluationDropout with a length.
  random::Purpose purpose = random::Purpose::kDropout;
  uint64_t step = 0;
  // Index of the batch's first sequence among the step's sequences, so that processing in chunks
  // drops the same features as processing all at once.
  int64_t first_sequence = 0;
  // Standard deviation of the noise that AddEmbeddingNoise adds at evaluation. 0 for none.
  double embedding_noise = 0;

  bool training() const { return purpose == random::Purpose::kDropout; }
};

// Sets each element of `features` [P, B, n, d] to 0 with probability `rate` and divides the others
// by 1 - rate. `site` identifies the layer, below 1024. A step has at most 2^22 sequences.
at::Tensor Dropout(const at::Tensor& features, double rate, uint32_t site,
                   const DropoutNumbers& numbers);

// Measures how robust a trained model is (relational reasoning on Latin squares, Figure 5): returns
// `embeddings` [P, B, n, d], before any positional encoding, plus noise from N(0, s^2) with
// s = numbers->embedding_noise. The noise is s times a standard normal function of seed, step and
// sequence, so levels of noise differ only by a factor. Returns `embeddings` unchanged if `numbers`
// is null or s is 0.
at::Tensor AddEmbeddingNoise(const at::Tensor& embeddings, const DropoutNumbers* numbers);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_DROPOUT_H_
