// Examples of a user's file (tasks/examples/): symbols as in transduction_examples.h, of which the
// network sees the input and an empty token for each symbol of the target; or numbers, of which its
// last outputs are compared with the target's. The axis is the examples' length. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_FILE_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_FILE_EXAMPLES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "tasks/examples/example_set.h"
#include "tasks/task.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// Brings a file to this machine: returns its path, whose bytes had this SHA-256 when it came.
using FetchFile =
    std::function<absl::StatusOr<std::string>(absl::string_view sha256, int64_t bytes)>;

// Loads the files that the parameters of a task (tasks/examples/entries.h) name. The newest set
// stays in memory, so that the next trial of an experiment need not read it again. Thread-safe.
// INVALID_ARGUMENT: the parameters, or the files, are not what the specification says they are;
// errors of `fetch`. `kind` is that of the task's entry.
absl::StatusOr<std::shared_ptr<const tasks::examples::ExampleSet>> LoadExamples(
    const catalogue::Parameters& parameters, tasks::TaskKind kind, const FetchFile& fetch);

// A step has examples of one length, each example of training.lengths equally likely, and of one
// shape, for all members of a pack the same; a member's data seed draws them, with replacement.
class FileExamples : public Examples {
 public:
  explicit FileExamples(std::shared_ptr<const tasks::examples::ExampleSet> set)
      : set_(std::move(set)) {}

  Targets targets() const override;
  bool has_numbers() const override;
  int64_t input_columns() const override;
  int64_t output_columns() const override;
  // Of the shortest input: what all examples of the length have.
  int64_t InputTokens(int64_t n) const override;
  // Of the longest example.
  int64_t SequenceTokens(int64_t n) const override;
  // Of the shortest target.
  int64_t OutputTokens(int64_t n) const override;
  int64_t LongestTraining(const v1::Training& training) const override;
  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override;
  // Test examples of a length come in an order that is the same for all trials.
  int64_t EvaluationSequences(int64_t n, int64_t asked) const override;
  int64_t RowsOfOneShape(int64_t n, int64_t asked, int64_t first) const override;
  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override;
  // Followed by as many empty tokens as targets of such an input have.
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

  // Training examples of each length of the range, from its first on.
  std::vector<int64_t> Weights(const v1::LengthRange& lengths) const;

 private:
  // Whether numbers answer in the places of the input's.
  bool answers_in_place() const;
  const tasks::examples::LengthGroup* Group(const tasks::examples::Part& part, int64_t n) const;
  // The first `asked` test examples of `n`; those of one shape side by side unless `in_order`.
  std::vector<const tasks::examples::Example*> Chosen(int64_t n, int64_t asked,
                                                      bool in_order = false) const;
  void Append(const tasks::examples::Example& example, Batch& batch) const;

  const std::shared_ptr<const tasks::examples::ExampleSet> set_;
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_FILE_EXAMPLES_H_
