// Interface between tasks and runs: supplies training batches and evaluation sequences in the form
// that networks read. A network reads sequences of tokens or numbers; its last outputs are compared
// with classes or numbers. No LibTorch.
//
// To add a kind of task, derive an interface from tasks::Task, write a class like those in
// transduction_examples.cc, puzzle_examples.cc, regression_examples.cc and text_examples.h, and add
// a case to CreateExamples.
#ifndef LENGTHWISE_WORKER_DATA_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_EXAMPLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/specification.pb.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::worker::data {

// Sequences of one shape, row-major.
struct Batch {
  int64_t rows = 0;
  // T.
  int64_t tokens_per_row = 0;
  // m: the last m outputs of the network are compared with the targets.
  int64_t outputs_per_row = 0;
  // [rows, T]: tokens, numbers or both (models::NetworkInput). Empty if the task has none.
  std::vector<int64_t> tokens;
  std::vector<double> numbers;
  // [rows, m]: classes or numbers, as Examples::targets says.
  std::vector<int64_t> targets;
  std::vector<double> number_targets;
  // [rows, m]: 1 if the output counts for accuracy and, for number targets, for the loss; otherwise
  // 0.
  std::vector<uint8_t> mask;
  // [rows, T]: ids for encodings with `positions: data`. Empty if the task has none.
  std::vector<int32_t> ids = {};
};

// Addresses of samples: row r is a function of (seed, purpose, step, r) alone. For a fixed data set
// the purpose is kDataSet and the rows are example numbers.
struct SampleAddresses {
  uint64_t seed = 0;
  // Decides what all members of a pack share, such as the shape of the rows.
  uint64_t schedule_seed = 0;
  random::Purpose purpose = random::Purpose::kTrainingSamples;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
};

// Returns first .. first + count - 1.
std::vector<uint32_t> RowsFrom(int64_t first, int64_t count);

// Selects evaluation sequences first .. first + count - 1 of the sequences that exist at `n` when
// `asked` are requested. They have one shape (Examples::RowsOfOneShape) and are the same for all
// trials with this evaluation seed.
struct EvaluationRows {
  uint64_t seed = 0;
  int64_t n = 0;
  int64_t asked = 0;
  int64_t first = 0;
  int64_t count = 0;
  // True to keep the order of selection instead of grouping sequences by shape: row r is then the
  // same for every `asked` above r. Rows may differ in shape, so request one at a time.
  bool in_order = false;
  // True for whole numbers in place of real ones. Requires Examples::HasWholeNumbers.
  bool whole_numbers = false;
  // True for evaluations during training. While n is in training's range, they have no features
  // that are reserved for the final evaluation (tasks::Domain::unseen).
  bool validation = false;
};

// Kind of targets. Classes are scored by soft-max cross-entropy, numbers by squared error.
enum class Targets : uint8_t { kClasses, kNumbers };

// A sequence from a user instead of a sampler.
struct GivenSequence {
  // Value n on the task's axis.
  int64_t length = 0;
  std::vector<int64_t> tokens;  // [T], or
  std::vector<double> numbers;  // [T]
  // [m]: 1 if the output is a part of the answer. Empty for text.
  std::vector<uint8_t> mask = {};
  std::vector<int32_t> ids = {};  // as Batch's
};

// Source of a task's examples. `n` is a value on the task's axis (tasks::TaskEntry::axis): the
// length of a string, the number of vectors in a puzzle, the scale of numbers, or the digits of an
// operand. In training it is a value of training.lengths, which for a regression is not the axis.
// Immutable except for Prepare; afterwards thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // Tokens of an example at `n`: in its input, and in total (T).
  virtual int64_t InputTokens(int64_t n) const = 0;
  virtual int64_t SequenceTokens(int64_t n) const = 0;
  // The same of a training example.
  virtual int64_t TrainingInputTokens(int64_t n) const { return InputTokens(n); }
  virtual int64_t TrainingSequenceTokens(int64_t n) const { return SequenceTokens(n); }

  // Builds the training set of this data seed, if the task has one per seed. Call before requesting
  // its training samples.
  virtual absl::Status Prepare(uint64_t data_seed) { return absl::OkStatus(); }

  // Returns how many of `asked` evaluation sequences exist at `n`.
  virtual int64_t EvaluationSequences(int64_t n, int64_t asked) const { return asked; }

  // Converts a user's input to a sequence. INVALID_ARGUMENT, with the accepted values, if the task
  // has no input of that size or a token or number is outside the task's alphabet. Inputs that no
  // sampler would draw are accepted: users may want to see how a model treats them.
  virtual absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const = 0;

  // Tokens of the longest training sequence, and the mean number of examples in a step.
  virtual int64_t LongestTraining(const v1::Training& training) const;
  virtual double ExamplesOfStep(const v1::Training& training) const {
    return training.batch_size();
  }
};

// Returns the tokens of `input`, each below `symbols`; INVALID_ARGUMENT for others and for numbers.
absl::StatusOr<std::vector<int64_t>> GivenTokens(const v1::TokenSequence& input, int64_t symbols);

// Returns the numbers of `input`, finite, after its tokens, which stand for whole numbers.
// INVALID_ARGUMENT if one is not finite.
absl::StatusOr<std::vector<double>> GivenNumbers(const v1::TokenSequence& input);

// Examples of fixed-length sequences, which a network reads in one pass. Text is in
// text_examples.h.
class Examples : public ExampleSource {
 public:
  virtual Targets targets() const { return Targets::kClasses; }
  // An output is right by rounding if its nearest multiple of this unit is the target.
  virtual double rounding_unit() const { return 1; }

  // Number of token ids: tokens are 0 .. input_columns() - 1.
  virtual int64_t input_columns() const = 0;
  virtual bool has_numbers() const { return false; }
  // Returns true if token 0 is an empty cell.
  virtual bool has_blank() const { return false; }
  // Number of classes; 1 for numbers.
  virtual int64_t output_columns() const = 0;

  // True if a sequence ends with a placeholder for each of its outputs.
  virtual bool has_placeholders() const { return false; }

  // Text of a token of the input or, if `is_target`, of a class, and what stands between them.
  virtual std::string Symbol(int64_t token, bool is_target) const;
  virtual absl::string_view separator() const { return " "; }

  // Appends training samples to `batch`. Rows already in it, for example other members', must be of
  // the same `n`.
  virtual void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const = 0;

  // Returns true if the examples of a step may differ in size. Its loss is then the mean of the
  // losses that its examples have alone.
  virtual bool MixesSizes() const { return false; }
  // Appends a member's samples of a step to `batches`, one for each size. The sizes, their order
  // and their numbers of rows are the same for all members.
  virtual void AppendStep(const SampleAddresses& addresses, int64_t n,
                          std::vector<Batch>& batches) const {
    batches.resize(1);
    AppendTraining(addresses, n, batches.front());
  }

  // Returns the number of consecutive evaluation sequences, from `first`, with the same number of
  // tokens.
  virtual int64_t RowsOfOneShape(int64_t n, int64_t asked, int64_t first) const {
    return EvaluationSequences(n, asked) - first;
  }

  virtual void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const = 0;

  // Returns true if evaluation sequences of whole numbers exist at `n`, for the accuracy by
  // rounding.
  virtual bool HasWholeNumbers(int64_t n) const { return false; }
};

// Wraps a task of any kind except text (text_examples.h). `lengths` is training.lengths.
std::unique_ptr<Examples> CreateExamples(std::unique_ptr<tasks::Task> task,
                                         const v1::LengthRange& lengths);
// Its cases, for tasks of one kind.
std::unique_ptr<Examples> CreateTransductionExamples(std::unique_ptr<tasks::Task> task);
std::unique_ptr<Examples> CreatePuzzleExamples(std::unique_ptr<tasks::Task> task);
std::unique_ptr<Examples> CreateRegressionExamples(std::unique_ptr<tasks::Task> task,
                                                   const v1::LengthRange& lengths);

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_EXAMPLES_H_
