// Dropout whose masks are functions of their place (random/stream.h), so that a resumed, moved or
// packed trial drops what an undisturbed one does.
#ifndef LENGTHWISE_MODELS_LAYERS_DROPOUT_H_
#define LENGTHWISE_MODELS_LAYERS_DROPOUT_H_

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "random/stream.h"

namespace lengthwise::models {

// Which random numbers decide what a forward pass drops, and what it adds to the embeddings.
struct DropoutNumbers {
  // One a member.
  std::vector<uint64_t> seeds;
  // kDropout and a training step, or kEvaluationDropout and a length.
  random::Purpose purpose = random::Purpose::kDropout;
  uint64_t step = 0;
  // The place among the step's sequences of the first that goes through, so that chunks of
  // sequences drop what all at once do.
  int64_t first_sequence = 0;
  // At evaluation: the standard deviation of what AddEmbeddingNoise (embedding_noise.h) adds; 0
  // adds nothing.
  double embedding_noise = 0;

  bool training() const { return purpose == random::Purpose::kDropout; }
};

// Sets each number of `features` [P, B, n, d] to 0 with probability `rate` and divides the others
// by 1 - rate. `site` is the layer's own number, below 1024; a step has at most 2^22 sequences.
at::Tensor Dropout(const at::Tensor& features, double rate, uint32_t site,
                   const DropoutNumbers& numbers);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_DROPOUT_H_
