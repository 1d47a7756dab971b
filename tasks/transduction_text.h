// Asks transduction tasks of causal language models, as text: the input, a separator, the target
// and an end token. Does not depend on LibTorch or gRPC.
#ifndef LENGTHWISE_TASKS_TRANSDUCTION_TEXT_H_
#define LENGTHWISE_TASKS_TRANSDUCTION_TEXT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tasks/text_task.h"

namespace lengthwise::tasks {

// Compares an answer to the right one, symbol by symbol. It is exact only as a whole, and as long.
// Symbols whose `counts` is 0 may be any; empty: all count. Places count from the last symbol
// before the end token.
AnswerComparison CompareSymbols(absl::Span<const int32_t> answer, absl::Span<const int32_t> given,
                                absl::Span<const uint8_t> counts = {});

// Tokens of inputs and targets keep their ids and share one vocabulary, so that a symbol to copy is
// the symbol to write. Then come the separator, the end token and padding. A size is a requested
// input length of the task.
class TransductionText final : public TextTask {
 public:
  explicit TransductionText(std::unique_ptr<TransductionTask> task)
      : task_(std::move(task)), separator_(std::max(task_->input_size(), task_->output_size())) {}

  int32_t vocabulary() const override { return separator_ + 3; }
  int32_t end_token() const override { return separator_ + 1; }
  int32_t padding_token() const override { return separator_ + 2; }

  absl::Status Check(int64_t size) const override;
  // Some tasks shorten every second length, so the one before `size` counts, too.
  int64_t LongestExample(int64_t size) const override;
  TextExample Sample(int64_t size, bool augmented, random::Stream& stream) const override;
  // Only symbols that the task's mask counts must be right.
  AnswerComparison Compare(const TextExample& example,
                           absl::Span<const int32_t> given) const override;

  // Symbols are numbers between spaces, the separator is "=".
  std::string Format(absl::Span<const int32_t> tokens) const override;
  absl::string_view separator() const override { return " "; }
  // Reads an input. The separator may be left out.
  absl::StatusOr<std::vector<int32_t>> Parse(absl::string_view text) const override;

 private:
  const std::unique_ptr<TransductionTask> task_;
  const int32_t separator_;
};

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_TRANSDUCTION_TEXT_H_
