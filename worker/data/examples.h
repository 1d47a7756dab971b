// What a task is to a run, whatever its kind; and to a network that reads sequences of tokens or
// numbers, of which its last outputs are compared with classes or numbers. No LibTorch.
//
// A new kind of task is an interface below tasks::Task, a class like those in
// transduction_examples.h, puzzle_examples.h, regression_examples.h and text_examples.h, and a case
// in CreateExamples.
#ifndef LENGTHWISE_WORKER_DATA_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_EXAMPLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/specification.pb.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::worker::data {

// Row-major.
struct Batch {
  int64_t rows = 0;
  // T.
  int64_t tokens_per_row = 0;
  // m: what the last m outputs of the network are compared with.
  int64_t outputs_per_row = 0;
  // [rows, T]: tokens, numbers or both (models::NetworkInput); empty where there are none.
  std::vector<int64_t> tokens;
  std::vector<double> numbers;
  // [rows, m]: classes or numbers, as Examples::targets says.
  std::vector<int64_t> targets;
  std::vector<double> number_targets;
  // [rows, m]; 1 where an output counts for accuracy and, compared with a number, for the loss, and
  // 0 elsewhere.
  std::vector<uint8_t> mask;
};

// Samples by their addresses: row r is a function of (seed, purpose, step, r) alone. Of a fixed
// data set, the purpose is kDataSet and the rows are numbers of examples.
struct SampleAddresses {
  uint64_t seed = 0;
  random::Purpose purpose = random::Purpose::kTrainingSamples;
  uint64_t step = 0;
  std::vector<uint32_t> rows;
};

// `count` neighbours.
std::vector<uint32_t> RowsFrom(int64_t first, int64_t count);

// Evaluation sequences first .. first + count - 1 of `n` of those that there are when `asked` are
// asked for. They are of one shape (Examples::RowsOfOneShape), and the same for all trials whose
// evaluation has this seed.
struct EvaluationRows {
  uint64_t seed = 0;
  int64_t n = 0;
  int64_t asked = 0;
  int64_t first = 0;
  int64_t count = 0;
  // Keeps the order in which sequences are chosen, whatever their shapes: row r is the same for
  // every `asked` above r. Rows may then be of several shapes, so ask for one at a time.
  bool in_order = false;
  // In place of real numbers whole ones, where Examples::HasWholeNumbers says that there are any.
  bool whole_numbers = false;
  // What a model is asked during training: where n is in training's range, nothing that training
  // never shows (tasks::Domain::unseen).
  bool validation = false;
};

// Kind of targets. Classes are scored by soft-max cross-entropy, numbers by squared error.
enum class Targets : uint8_t { kClasses, kNumbers };

// A sequence that a user gives instead of a sampler.
struct GivenSequence {
  // Its value n on the task's axis.
  int64_t length = 0;
  std::vector<int64_t> tokens;  // [T], or
  std::vector<double> numbers;  // [T]
};

// What a run asks of every task. `n` is a value of the task's axis (tasks::TaskEntry::axis): the
// length of a string, the number of vectors of a puzzle, the scale of numbers, the digits of an
// operand. Immutable but for Prepare; then any thread may call.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // Tokens of an example at `n`: of its input, and in total (T).
  virtual int64_t InputTokens(int64_t n) const = 0;
  virtual int64_t SequenceTokens(int64_t n) const = 0;

  // Makes what a trial of this data seed trains on, where that is a set of its own. Before its
  // training samples are asked for.
  virtual absl::Status Prepare(uint64_t data_seed) { return absl::OkStatus(); }

  // Returns how many of `asked` evaluation sequences exist at `n`.
  virtual int64_t EvaluationSequences(int64_t n, int64_t asked) const { return asked; }

  // The sequence of an input of the user's: INVALID_ARGUMENT, naming what is accepted, where the
  // task has none of that size, or a token or number is not the task's. What no sample has in this
  // order is accepted: what a model makes of it may be just what is asked.
  virtual absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const = 0;

  // Tokens of the longest sequence that training shows, and examples that a step has on average.
  virtual int64_t LongestTraining(const v1::Training& training) const;
  virtual double ExamplesOfStep(const v1::Training& training) const;
};

// INVALID_ARGUMENT where a task of tokens is given numbers.
absl::Status CheckHasNoNumbers(const v1::TokenSequence& input);

// Those that a network reads whole.
class Examples : public ExampleSource {
 public:
  virtual Targets targets() const { return Targets::kClasses; }
  // A number is right by rounding when its nearest multiple of this is the target.
  virtual double rounding_unit() const { return 1; }

  // Tokens are below it; and classes.
  virtual int64_t input_columns() const = 0;
  virtual bool has_numbers() const { return false; }
  // Returns true if token 0 is an empty cell.
  virtual bool has_blank() const { return false; }
  virtual int64_t output_columns() const = 0;

  // Outputs that are compared; SequenceTokens may count some for them.
  virtual int64_t OutputTokens(int64_t n) const = 0;

  // Appends training samples to `batch`, whose rows so far (none, or other members') are of the
  // same `n`.
  virtual void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const = 0;

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

// Takes the task over, which is not text (text_examples.h). `lengths` are training.lengths.
std::unique_ptr<Examples> CreateExamples(std::unique_ptr<tasks::Task> task,
                                         const v1::LengthRange& lengths);

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_EXAMPLES_H_
