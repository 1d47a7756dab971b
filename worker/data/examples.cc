#include "worker/data/examples.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::worker::data {

std::vector<uint32_t> RowsFrom(int64_t first, int64_t count) {
  std::vector<uint32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(first));
  return rows;
}

int64_t ExampleSource::LongestTraining(const v1::Training& training) const {
  int64_t longest = 0;
  for (int64_t n = training.lengths().min(); n <= training.lengths().max(); ++n) {
    longest = std::max(longest, TrainingSequenceTokens(n));
  }
  return longest;
}

std::string Examples::Symbol(int64_t token, bool is_target) const { return absl::StrCat(token); }

absl::StatusOr<std::vector<int64_t>> GivenTokens(const v1::TokenSequence& input, int64_t symbols) {
  if (!input.numbers().empty()) {
    return absl::InvalidArgumentError("it has numbers; the task's inputs are tokens");
  }
  for (int i = 0; i < input.tokens_size(); ++i) {
    if (input.tokens(i) >= 0 && input.tokens(i) < symbols) continue;
    return absl::InvalidArgumentError(absl::StrCat("its token ", i + 1, " is ", input.tokens(i),
                                                   "; the task's inputs have tokens 0 to ",
                                                   symbols - 1));
  }
  return std::vector<int64_t>(input.tokens().begin(), input.tokens().end());
}

absl::StatusOr<std::vector<double>> GivenNumbers(const v1::TokenSequence& input) {
  std::vector<double> numbers(input.tokens().begin(), input.tokens().end());
  numbers.insert(numbers.end(), input.numbers().begin(), input.numbers().end());
  for (const double number : numbers) {
    if (std::isfinite(number)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("it has the number ", number, "; the task's inputs are finite"));
  }
  return numbers;
}

std::unique_ptr<Examples> CreateExamples(std::unique_ptr<tasks::Task> task,
                                         const v1::LengthRange& lengths) {
  switch (task->kind()) {
    case tasks::TaskKind::kTransduction:
      return CreateTransductionExamples(std::move(task));
    case tasks::TaskKind::kPuzzle:
      return CreatePuzzleExamples(std::move(task));
    case tasks::TaskKind::kRegression:
      return CreateRegressionExamples(std::move(task), lengths);
    case tasks::TaskKind::kText:
      break;
  }
  std::abort();  // text uses TextExamples (text_examples.h)
}

}  // namespace lengthwise::worker::data
