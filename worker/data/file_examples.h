// Supplies examples from a user's files (tasks/examples/). For symbols, the network sees the input
// and one empty token per target symbol, as in transduction_examples.cc. For numbers, its last
// outputs are compared with the target's numbers. The axis is the examples' length. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_FILE_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_FILE_EXAMPLES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "tasks/examples/example_set.h"
#include "tasks/task.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// Downloads a file to this machine and returns its path. The SHA-256 of its bytes was checked on
// arrival.
using FetchFile =
    std::function<absl::StatusOr<std::string>(absl::string_view sha256, int64_t bytes)>;

// Loads the files named by a task's parameters (tasks/examples/entries.h). The last set loaded
// stays in memory, so the next trial of an experiment need not read it again. `kind` is that of the
// task's entry. INVALID_ARGUMENT if the parameters or the files do not match the specification;
// also the errors of `fetch`. Thread-safe.
absl::StatusOr<std::shared_ptr<const tasks::examples::ExampleSet>> LoadExamples(
    const catalogue::Parameters& parameters, tasks::TaskKind kind, const FetchFile& fetch);

// Every example in training.lengths is equally likely in a step. The step's sizes are shared by all
// members of a pack, and each member's data seed draws its examples of these sizes.
//
// Where all training examples have one size, a step has examples of one length, drawn with
// replacement. Otherwise it has training.batch_size different ones, as far as there are as many.
// Few sizes in a step make it fast, so neighbouring sizes form pools just large enough for a batch,
// and a step draws from one pool: from a single size where the file has many examples of each.
class FileExamples : public Examples {
 public:
  // `training` gives the lengths and the batch size.
  FileExamples(std::shared_ptr<const tasks::examples::ExampleSet> set,
               const v1::Training& training);

  Targets targets() const override { return has_numbers() ? Targets::kNumbers : Targets::kClasses; }
  bool has_numbers() const override { return set_->form == tasks::examples::Form::kNumbers; }
  int64_t input_columns() const override { return has_numbers() ? 0 : set_->input_symbols + 1; }
  int64_t output_columns() const override { return has_numbers() ? 1 : set_->target_symbols; }
  // Tokens of the shortest input: a lower bound for all examples of the length.
  int64_t InputTokens(int64_t n) const override;
  // Tokens of the longest example.
  int64_t SequenceTokens(int64_t n) const override;
  bool has_placeholders() const override { return !answers_in_place(); }
  std::string Symbol(int64_t token, bool is_target) const override;
  absl::string_view separator() const override {
    return set_->form == tasks::examples::Form::kCharacters ? "" : " ";
  }
  int64_t LongestTraining(const v1::Training& training) const override;
  // Examples of one size, which all examples of the length must have.
  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override;
  bool MixesSizes() const override { return !pools_.empty(); }
  void AppendStep(const SampleAddresses& addresses, int64_t n,
                  std::vector<Batch>& batches) const override;
  // The order of a length's test examples is the same for all trials.
  int64_t EvaluationSequences(int64_t n, int64_t asked) const override {
    return set_->TestExamples(n, asked);
  }
  int64_t RowsOfOneShape(int64_t n, int64_t asked, int64_t first) const override;
  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override;
  // Appends one empty token (or zero) per target value of examples with inputs of this size, unless
  // numbers are answered in place.
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

  // Number of training examples at each length of the range, in ascending order.
  std::vector<int64_t> Weights(const v1::LengthRange& lengths) const;

 private:
  // Returns true if the outputs for numbers are read at the input's positions.
  bool answers_in_place() const { return has_numbers() && set_->same_length; }
  // Returns the first `asked` test examples of `n`, grouped by shape unless `in_order`.
  std::vector<const tasks::examples::Example*> Chosen(int64_t n, int64_t asked,
                                                      bool in_order = false) const;
  void Append(const tasks::examples::Example& example, Batch& batch) const;

  // The training examples of one size: runs of examples, each of one length.
  struct SizeGroup {
    std::vector<absl::Span<const tasks::examples::Example>> runs;
    int64_t examples = 0;
  };
  // Ascending by inputs and targets.
  using Pool = std::map<std::pair<uint32_t, uint32_t>, SizeGroup>;

  const std::shared_ptr<const tasks::examples::ExampleSet> set_;
  // By the largest size in each; empty where all training examples have one size.
  std::map<std::pair<uint32_t, uint32_t>, Pool> pools_;
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_FILE_EXAMPLES_H_
