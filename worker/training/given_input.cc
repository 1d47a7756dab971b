#include "worker/training/given_input.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::worker::training {

absl::StatusOr<int64_t> LengthOfInput(const tasks::TransductionTask& task,
                                      absl::Span<const int32_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < task.input_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("its token ", i + 1, " is ", tokens[i],
                                                   "; the task's inputs have tokens 0 to ",
                                                   task.input_size() - 1));
  }
  // Lengths that a task lacks are rounded to one that it has: such an n stands for itself.
  const auto count = static_cast<int64_t>(tokens.size());
  if (count >= 1 && task.InputLength(count) == count) return count;
  return absl::InvalidArgumentError(absl::StrCat(
      "it has ", count, " tokens, and no input of the task has as many",
      count >= 1 ? absl::StrCat("; one of about that length has ", task.InputLength(count)) : ""));
}

}  // namespace lengthwise::worker::training
