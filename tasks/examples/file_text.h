// A user's examples as text for a causal language model: it reads the input and continues it with
// the target and an end token. Does not depend on LibTorch or gRPC.
#ifndef LENGTHWISE_TASKS_EXAMPLES_FILE_TEXT_H_
#define LENGTHWISE_TASKS_EXAMPLES_FILE_TEXT_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/examples/example_set.h"
#include "tasks/text_task.h"

namespace lengthwise::tasks::examples {

// Inputs and targets share one vocabulary: the symbols of both in byte order, or the integers up to
// the largest; then the end token and padding. An example's size is its length.
class FileText : public TextTask {
 public:
  // `set` must have symbols, not numbers, and no mask.
  explicit FileText(std::shared_ptr<const ExampleSet> set);

  int32_t vocabulary() const override { return symbols_ + 2; }
  int32_t end_token() const override { return symbols_; }
  int32_t padding_token() const override { return symbols_ + 1; }

  // INVALID_ARGUMENT for a size without test examples.
  absl::Status Check(int64_t size) const override;
  absl::Status CheckTraining(int64_t smallest, int64_t largest) const override;
  // Covers all examples up to `size`, since a shorter example may have more tokens.
  int64_t LongestExample(int64_t size) const override;
  int64_t LongestTrainingExample(int64_t smallest, int64_t largest) const override;
  bool has_ids() const override { return !set_->positions.empty(); }
  std::vector<int32_t> Ids(const TextExample& example,
                           absl::Span<const int32_t> tokens) const override {
    if (!has_ids()) return {};
    std::vector<int32_t> ids = example.ids;
    ids.resize(tokens.size());
    return ids;
  }
  int64_t LargestId(int64_t /*size*/) const override {
    return has_ids() ? *std::max_element(set_->positions.begin(), set_->positions.end()) : 0;
  }
  // Makes each training example of these sizes equally likely.
  int64_t DrawSize(int64_t smallest, int64_t largest, random::Stream& stream) const override;
  // Draws a training example.
  TextExample Sample(int64_t size, bool augmented, random::Stream& stream) const override;
  // Test examples come in the same order for all trials.
  int64_t Questions(int64_t size, int64_t asked) const override {
    return set_->TestExamples(size, asked);
  }
  TextExample Question(int64_t size, int64_t number, random::Stream& stream) const override;

  // See CompareSymbols (tasks/transduction_text.h).
  AnswerComparison Compare(const TextExample& example,
                           absl::Span<const int32_t> given) const override;
  std::string Format(absl::Span<const int32_t> tokens) const override;
  absl::string_view separator() const override {
    return set_->form == Form::kCharacters ? "" : " ";
  }
  absl::StatusOr<std::vector<int32_t>> Parse(absl::string_view text) const override;

  TextExample TextOf(const Example& example) const;

 private:
  const std::shared_ptr<const ExampleSet> set_;
  int32_t symbols_ = 0;
  // For text: the shared vocabulary, and in it the index of each input and target symbol.
  std::vector<std::string> vocabulary_;
  std::vector<int32_t> inputs_, targets_;
  // Cumulative by size: tokens of the longest example, and number of training examples.
  std::map<int32_t, int64_t> longest_, training_;
};

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_FILE_TEXT_H_
