#include "worker/evaluation/chunking.h"

#include <algorithm>

namespace lengthwise::worker::evaluation {
namespace {

// Logits, a term added to them, their sum and probabilities.
constexpr int64_t kLogitCopies = 4;
// The feed-forward's hidden layer before and after its non-linearity, and queries, keys, values and
// residuals.
constexpr int64_t kActivationCopies = 4;

}  // namespace

int64_t BytesPerSequence(const SequenceSize& size) {
  const int64_t logits = size.holds_logits ? size.heads * size.tokens * size.tokens : 0;
  const int64_t activations = 4 * size.d_model * size.tokens;
  return size.bytes_per_number * (kLogitCopies * logits + kActivationCopies * activations);
}

int64_t SequencesPerChunk(const SequenceSize& size, int64_t members, int64_t memory_bytes) {
  return std::max<int64_t>(1, memory_bytes / (members * BytesPerSequence(size)));
}

}  // namespace lengthwise::worker::evaluation
