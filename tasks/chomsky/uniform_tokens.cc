#include "tasks/chomsky/uniform_tokens.h"

#include <algorithm>
#include <cstddef>

namespace lengthwise::tasks::chomsky {

void DrawBits(random::Stream& stream, absl::Span<int32_t> tokens) {
  while (!tokens.empty()) {
    uint32_t word = stream.NextUint32();
    const size_t count = std::min<size_t>(tokens.size(), 32);
    for (size_t i = 0; i < count; ++i, word >>= 1) tokens[i] = static_cast<int32_t>(word & 1);
    tokens.remove_prefix(count);
  }
}

void DrawTokens(random::Stream& stream, int32_t size, absl::Span<int32_t> tokens) {
  if (size == 2) return DrawBits(stream, tokens);
  const auto bound = static_cast<uint32_t>(size);
  for (int32_t& token : tokens) token = static_cast<int32_t>(stream.Below(bound));
}

void UniformInputTask::Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
                              absl::Span<int32_t> target) const {
  DrawTokens(stream, input_size_, input);
  Solve(input, target);
}

}  // namespace lengthwise::tasks::chomsky
