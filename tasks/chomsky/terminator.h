// Answers whose length does not follow from the input's. A terminator ends them; zeros fill the
// rest. The zeros do not count for accuracy but count for the loss, as in the reference code.
#ifndef LENGTHWISE_TASKS_CHOMSKY_TERMINATOR_H_
#define LENGTHWISE_TASKS_CHOMSKY_TERMINATOR_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"

namespace lengthwise::tasks::chomsky {

// The token after the last bit of an answer.
inline constexpr int32_t kTerminator = 2;

// Writes the terminator and the zeros after an answer that ends before `end`.
inline void Terminate(absl::Span<int32_t> target, absl::Span<int32_t>::iterator end) {
  if (end == target.end()) return;
  *end = kTerminator;
  std::fill(end + 1, target.end(), 0);
}

// Marks the elements up to and including the first terminator.
inline void MaskThroughTerminator(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) {
  bool counts = true;
  for (size_t i = 0; i < target.size(); ++i) {
    mask[i] = counts;
    counts = counts && target[i] != kTerminator;
  }
}

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_TERMINATOR_H_
