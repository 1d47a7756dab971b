// Text tasks: questions with answers, as tokens for a causal language model. Does not depend on
// LibTorch or gRPC.
#ifndef LENGTHWISE_TASKS_TEXT_TASK_H_
#define LENGTHWISE_TASKS_TEXT_TASK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "random/permutation.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

// The prompt, the answer and the end token.
struct TextExample {
  std::vector<int32_t> tokens;
  size_t prompt = 0;  // number of tokens of the prompt
  // Ids that the example has of itself, not by a rule; fewer than tokens, or none.
  std::vector<int32_t> ids = {};

  absl::Span<const int32_t> Prompt() const { return absl::MakeSpan(tokens).first(prompt); }
  // Includes the end token.
  absl::Span<const int32_t> Answer() const { return absl::MakeSpan(tokens).subspan(prompt); }

  bool operator==(const TextExample&) const = default;
};

// Result of comparing a model's answer with the correct one.
struct AnswerComparison {
  // True if all tokens up to and including the end token are right. Blanks are ignored.
  bool is_exact = false;
  // True if the digits are right, whatever tokens stand between them.
  bool has_right_digits = false;
  // Places of wrong or missing digits, ascending. 0 is the least significant digit.
  std::vector<int32_t> wrong_digits;
  // Places of the right answer.
  int32_t places = 0;
  // True if there is a carry into the first of wrong_digits. Absent if no digit is wrong, or if the
  // task has no carries.
  std::optional<bool> first_wrong_has_carry;
  // For sums, for each place: the distance to the place where the carry into it arose; 0 without a
  // carry. Set for right answers, too.
  std::vector<int32_t> carry_distances;
};

// Immutable after construction. Thread-safe.
class TextTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kText; }

  // Tokens are {0, ..., vocabulary() - 1}, including end_token() and padding_token().
  virtual int32_t vocabulary() const = 0;
  virtual int32_t end_token() const = 0;
  virtual int32_t padding_token() const = 0;

  // INVALID_ARGUMENT, with the limits, for a size without examples. The size is the axis of
  // generalization, such as the number of digits of an operand.
  virtual absl::Status Check(int64_t size) const = 0;

  // INVALID_ARGUMENT if no training example has a size from `smallest` to `largest`.
  virtual absl::Status CheckTraining(int64_t smallest, int64_t largest) const {
    return Check(largest);
  }

  // Tokens of the longest example of `size` without augmentation.
  virtual int64_t LongestExample(int64_t size) const = 0;

  // LongestExample for training examples of sizes from `smallest` to `largest`.
  virtual int64_t LongestTrainingExample(int64_t /*smallest*/, int64_t largest) const {
    return LongestExample(largest);
  }

  // True if every training example of a size has LongestExample(size) tokens.
  virtual bool has_fixed_lengths() const { return false; }

  // True if training examples are augmented. Augmentation makes them longer.
  virtual bool augments() const { return false; }

  // True if examples have position ids, for encodings with `positions: data`.
  virtual bool has_ids() const { return false; }

  // Ids of `tokens`, which are the example's prompt and its answer or what a model wrote so far:
  // one for each, 0 for the end token, padding and whatever has none.
  virtual std::vector<int32_t> Ids(const TextExample& /*example*/,
                                   absl::Span<const int32_t> /*tokens*/) const {
    return {};
  }

  // Largest id of examples up to `size`.
  virtual int64_t LargestId(int64_t /*size*/) const { return 0; }

  // Draws the size of a training example from the inclusive range.
  virtual int64_t DrawSize(int64_t smallest, int64_t largest, random::Stream& stream) const {
    return stream.Between(smallest, largest);
  }

  // Draws one example. `augmented` adds the task's augmentation; training only.
  virtual TextExample Sample(int64_t size, bool augmented, random::Stream& stream) const = 0;

  // Number of questions of `size` for an evaluation that requests `asked`.
  virtual int64_t Questions(int64_t size, int64_t asked) const { return asked; }
  // Question `number`, drawn from its own stream.
  virtual TextExample Question(int64_t size, int64_t number, random::Stream& stream) const {
    return Sample(size, /*augmented=*/false, stream);
  }

  // Compares a model's answer to the prompt of `example`. `given` ends with its first end token, or
  // where the model was stopped.
  virtual AnswerComparison Compare(const TextExample& example,
                                   absl::Span<const int32_t> given) const = 0;

  virtual std::string Format(absl::Span<const int32_t> tokens) const = 0;
  // What stands between the tokens in Format's text.
  virtual absl::string_view separator() const { return ""; }
  // Inverse of Format. INVALID_ARGUMENT names the first symbol that is no token.
  virtual absl::StatusOr<std::vector<int32_t>> Parse(absl::string_view text) const = 0;
};

// The source of training examples.
struct TextData {
  uint64_t seed = 0;
  // Range for TextTask::DrawSize.
  int64_t smallest_size = 1;
  int64_t largest_size = 1;
  // Number of distinct examples in the data set, below 2^32. 0: every example is new. A set is
  // defined by its seed and size; it is not stored.
  int64_t examples = 0;
  // Seed of the data set. If set, `seed` determines only the order of its examples.
  std::optional<uint64_t> set_seed = std::nullopt;
};

// Example `index` of the training step `step`: a function of (data, step, index) only. Draws from a
// data set with replacement.
TextExample TrainingExample(const TextTask& task, const TextData& data, uint64_t step,
                            uint32_t index);

// Goes through a data set in epochs: each epoch has every example once, in an order of its own that
// follows from `data.seed`. Not thread-safe. The task must outlive it.
class EpochExamples {
 public:
  EpochExamples(const TextTask& task, const TextData& data) : task_(task), data_(data) {}

  // The example at a place, counted across epochs: place 0 is the first of the first epoch, place
  // data.examples the first of the second.
  TextExample At(int64_t place);
  // Number of tokens of At(place). Cheaper than At if the task has fixed lengths.
  size_t LengthAt(int64_t place);

 private:
  // The number in the data set of the example at `place`.
  uint64_t NumberAt(int64_t place);

  const TextTask& task_;
  const TextData data_;
  int64_t epoch_ = -1;  // the epoch of order_
  std::optional<random::Permutation> order_;
};

// Tokens of the longest sequence in a step that packs examples up to `largest_size` into sequences
// of `packed` tokens (packing.h).
int64_t LongestTraining(const TextTask& task, int64_t largest_size, int64_t packed,
                        bool attend_across);

// Question `number` of `size` in evaluations with this seed.
TextExample EvaluationQuestion(const TextTask& task, uint64_t seed, int64_t size, int64_t number);

// The size whose positions a prompt of `tokens` tokens has that somebody wrote: the smallest one
// with a question of at least as many. INVALID_ARGUMENT if there is none.
absl::StatusOr<int64_t> SizeOfPrompt(const TextTask& task, size_t tokens);

// Upper bound for the tokens of a question of `size` with a model's answer: the longest example's,
// doubled for tasks with augmentation, where a model may imitate what was added.
int64_t LongestContinued(const TextTask& task, int64_t size);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_TEXT_TASK_H_
