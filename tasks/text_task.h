// Text: questions with answers, as tokens for a causal language model. No LibTorch, no gRPC.
#ifndef LENGTHWISE_TASKS_TEXT_TASK_H_
#define LENGTHWISE_TASKS_TEXT_TASK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "random/permutation.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

// The prompt, the answer and the end token.
struct TextExample {
  std::vector<int32_t> tokens;
  size_t prompt = 0;  // number of tokens of the prompt

  absl::Span<const int32_t> Prompt() const { return absl::MakeSpan(tokens).first(prompt); }
  // With the end token.
  absl::Span<const int32_t> Answer() const { return absl::MakeSpan(tokens).subspan(prompt); }

  bool operator==(const TextExample&) const = default;
};

// A model's answer beside the right one.
struct AnswerComparison {
  // All tokens up to and with the end token are right; blanks count for nothing.
  bool is_exact = false;
  // The digits are right, whatever stands between them.
  bool has_right_digits = false;
  // Places of wrong or missing digits, 0 for the least significant one; ascending.
  std::vector<int32_t> wrong_digits;
  // Whether there is a carry into the first of wrong_digits; absent where none is wrong, and where
  // the task knows no carries.
  std::optional<bool> first_wrong_has_carry;
  // Of sums, by place: how many places below the carry into it arose; 0 without a carry. Right
  // answers have it, too.
  std::vector<int32_t> carry_distances;
};

// Immutable after construction; all methods may be called from any thread.
class TextTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kText; }

  // Tokens are {0, ..., vocabulary() - 1}, the two below among them.
  virtual int32_t vocabulary() const = 0;
  virtual int32_t end_token() const = 0;
  virtual int32_t padding_token() const = 0;

  // INVALID_ARGUMENT, with the limits, for a size that the task has no examples of. The size is
  // what is generalized over: the number of digits of an operand.
  virtual absl::Status Check(int64_t size) const = 0;

  // INVALID_ARGUMENT where no training examples have sizes from `smallest` to `largest`.
  virtual absl::Status CheckTraining(int64_t smallest, int64_t largest) const {
    return Check(largest);
  }

  // Tokens of the longest example of `size` without augmentation.
  virtual int64_t LongestExample(int64_t size) const = 0;

  // The same of the examples that are trained on, of sizes from `smallest` to `largest`.
  virtual int64_t LongestTrainingExample(int64_t /*smallest*/, int64_t largest) const {
    return LongestExample(largest);
  }

  // Whether every training example of a size has LongestExample(size) tokens.
  virtual bool has_fixed_lengths() const { return false; }

  // Whether training examples are augmented, which makes them longer.
  virtual bool augments() const { return false; }

  // Draws the size of a training example, both ends included.
  virtual int64_t DrawSize(int64_t smallest, int64_t largest, random::Stream& stream) const {
    return stream.Between(smallest, largest);
  }

  // Draws one example. `augmented` is for training: what the task's parameters add to it then.
  virtual TextExample Sample(int64_t size, bool augmented, random::Stream& stream) const = 0;

  // Of `asked` questions of an evaluation, how many there are of `size`.
  virtual int64_t Questions(int64_t size, int64_t asked) const { return asked; }
  // The question of this number, whose stream is given.
  virtual TextExample Question(int64_t size, int64_t number, random::Stream& stream) const {
    return Sample(size, /*augmented=*/false, stream);
  }

  // Compares what a model wrote after the prompt of `example`, up to and with its first end token
  // or as far as it came.
  virtual AnswerComparison Compare(const TextExample& example,
                                   absl::Span<const int32_t> given) const = 0;

  virtual std::string Format(absl::Span<const int32_t> tokens) const = 0;
};

// Where a training example's numbers come from.
struct TextData {
  uint64_t seed = 0;
  // Of TextTask::DrawSize.
  int64_t smallest_size = 1;
  int64_t largest_size = 1;
  // Number of different examples, below 2^32; 0: a new one every time. A set is its seed and size:
  // nothing is stored.
  int64_t examples = 0;
  // Seed of the set. Where it is given, `seed` decides the order of its examples alone.
  std::optional<uint64_t> set_seed = std::nullopt;
};

// Example `index` of the training step `step`, a set's drawn with replacement: a function of (data,
// step, index) alone.
TextExample TrainingExample(const TextTask& task, const TextData& data, uint64_t step,
                            uint32_t index);

// A set's examples in epochs: each once in every epoch, and every epoch in an order of its own,
// from `data.seed`. Not thread-safe; the task outlives it.
class EpochExamples {
 public:
  EpochExamples(const TextTask& task, const TextData& data) : task_(task), data_(data) {}

  // The example at a place of the epochs, one behind the other: place 0 is the first of the first
  // epoch, place data.examples the first of the second.
  TextExample At(int64_t place);
  // Its tokens, for less than it costs to make it where the task has fixed lengths.
  size_t LengthAt(int64_t place);

 private:
  // The number of the example in the set.
  uint64_t NumberAt(int64_t place);

  const TextTask& task_;
  const TextData data_;
  int64_t epoch_ = -1;  // of order_
  std::optional<random::Permutation> order_;
};

// Tokens of the longest sequence in a step that packs examples up to `largest_size` into sequences
// of `packed` tokens (packing.h).
int64_t LongestTraining(const TextTask& task, int64_t largest_size, int64_t packed,
                        bool attend_across);

// Tokens that a question of `size` and a model's answer may have: those of the longest example, and
// as many again where a model was shown augmented ones and may write what was added.
int64_t LongestContinued(const TextTask& task, int64_t size);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_TEXT_TASK_H_
