#include "tasks/transduction_text.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace lengthwise::tasks {

AnswerComparison CompareSymbols(absl::Span<const int32_t> answer, absl::Span<const int32_t> given,
                                absl::Span<const uint8_t> counts) {
  AnswerComparison comparison;
  comparison.places = static_cast<int32_t>(answer.size()) - 1;
  for (size_t place = 0; place + 1 < answer.size(); ++place) {
    const size_t at = answer.size() - 2 - place;
    if (!counts.empty() && counts[at] == 0) continue;
    if (at < given.size() && given[at] == answer[at]) continue;
    comparison.wrong_digits.push_back(static_cast<int32_t>(place));
  }
  comparison.is_exact = comparison.has_right_digits = comparison.wrong_digits.empty() &&
                                                      given.size() == answer.size() &&
                                                      given.back() == answer.back();
  return comparison;
}

absl::Status TransductionText::Check(int64_t size) const {
  if (size >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("inputs have at least 1 token, not ", size));
}

int64_t TransductionText::LongestExample(int64_t size) const {
  int64_t longest = 0;
  for (int64_t n = std::max<int64_t>(1, size - 1); n <= size; ++n) {
    longest = std::max(longest, task_->InputLength(n) + task_->OutputLength(n) + 2);
  }
  return longest;
}

TextExample TransductionText::Sample(int64_t size, bool /*augmented*/,
                                     random::Stream& stream) const {
  const auto inputs = static_cast<size_t>(task_->InputLength(size));
  const auto targets = static_cast<size_t>(task_->OutputLength(size));
  TextExample example{.tokens = std::vector<int32_t>(inputs + targets + 2), .prompt = inputs + 1};
  const absl::Span<int32_t> tokens = absl::MakeSpan(example.tokens);
  task_->Sample(size, stream, tokens.first(inputs), tokens.subspan(example.prompt, targets));
  tokens[inputs] = separator_;
  tokens.back() = end_token();
  return example;
}

AnswerComparison TransductionText::Compare(const TextExample& example,
                                           absl::Span<const int32_t> given) const {
  const absl::Span<const int32_t> answer = example.Answer();
  std::vector<uint8_t> counts(answer.size() - 1);
  task_->Mask(answer.first(counts.size()), absl::MakeSpan(counts));
  return CompareSymbols(answer, given, counts);
}

std::string TransductionText::Format(absl::Span<const int32_t> tokens) const {
  return absl::StrJoin(tokens, separator(), [&](std::string* out, int32_t token) {
    if (token < separator_) {
      absl::StrAppend(out, token);
    } else {
      out->append(token == separator_ ? "=" : token == end_token() ? "<eos>" : "<pad>");
    }
  });
}

absl::StatusOr<std::vector<int32_t>> TransductionText::Parse(absl::string_view text) const {
  std::vector<int32_t> tokens;
  bool ended = false;
  for (const absl::string_view symbol : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int32_t token = 0;
    if (symbol == "=" && !ended) {
      ended = true;
    } else if (ended || !absl::SimpleAtoi(symbol, &token) || token < 0 ||
               token >= task_->input_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("got \"", symbol, "\" as symbol ", tokens.size() + 1 + (ended ? 1 : 0),
                       ", expected numbers from 0 to ", task_->input_size() - 1,
                       " between spaces, then \"=\" or nothing"));
    } else {
      tokens.push_back(token);
    }
  }
  const auto size = static_cast<int64_t>(tokens.size());
  if (size == 0 || task_->InputLength(size) != size) {
    return absl::InvalidArgumentError(absl::StrCat("the task has no inputs of ", size,
                                                   " tokens; a length that it has is ",
                                                   task_->InputLength(std::max<int64_t>(1, size))));
  }
  tokens.push_back(separator_);
  return tokens;
}

}  // namespace lengthwise::tasks
