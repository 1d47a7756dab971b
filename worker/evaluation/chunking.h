// How many sequences are evaluated at once, so that memory stays bounded at any length. No
// LibTorch.
#ifndef LENGTHWISE_WORKER_EVALUATION_CHUNKING_H_
#define LENGTHWISE_WORKER_EVALUATION_CHUNKING_H_

#include <cstdint>

namespace lengthwise::worker::evaluation {

struct SequenceSize {
  // Input and output.
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t d_model = 0;
  // Of the parameters' type.
  int64_t bytes_per_number = 4;
  // models::Network::HoldsLogits.
  bool holds_logits = true;
};

// An estimate of what a forward pass without gradients holds at once for a sequence: a few copies
// of activations [tokens, 4 d_model] and, where they are held, of one layer's attention logits
// [heads, tokens, tokens]; a layer's are freed before the next's.
int64_t BytesPerSequence(const SequenceSize& size);

// Sequences whose estimate fits into `memory_bytes` for `members` models at once; at least 1.
int64_t SequencesPerChunk(const SequenceSize& size, int64_t members, int64_t memory_bytes);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_CHUNKING_H_
