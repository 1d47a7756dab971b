#include "tasks/chomsky/function_task.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lengthwise::tasks::chomsky {
namespace {

class FunctionTask final : public TransductionTask {
 public:
  explicit FunctionTask(TaskFunctions functions) : functions_(std::move(functions)) {}

  int32_t input_size() const override { return functions_.input_size; }
  int32_t output_size() const override { return functions_.output_size; }
  int64_t InputLength(int64_t n) const override { return functions_.input_length(n); }
  int64_t OutputLength(int64_t n) const override { return functions_.output_length(n); }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    if (functions_.draw) {
      functions_.draw(stream, input);
    } else {
      DrawTokens(stream, input_size(), input);
    }
    Solve(input, target);
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    functions_.solve(input, target);
  }

  void Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const override {
    bool counts = true;
    for (size_t i = 0; i < target.size(); ++i) {
      mask[i] = counts;
      counts = counts && !(functions_.is_terminated && target[i] == kTerminator);
    }
  }

 private:
  const TaskFunctions functions_;
};

}  // namespace

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

void Terminate(absl::Span<int32_t> target, absl::Span<int32_t>::iterator end) {
  if (end == target.end()) return;
  *end = kTerminator;
  std::fill(end + 1, target.end(), 0);
}

std::unique_ptr<Task> FromFunctions(TaskFunctions functions) {
  return std::make_unique<FunctionTask>(std::move(functions));
}

}  // namespace lengthwise::tasks::chomsky
