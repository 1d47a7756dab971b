// Text: what a step trains a language model on, and what evaluation asks it (tasks/text_task.h). In
// the place of a length stands the size of a question. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_TEXT_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_TEXT_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"
#include "proto/specification.pb.h"
#include "tasks/packing.h"
#include "tasks/text_task.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// Tokens with the positions of tokens `first` .. first + count - 1 of a sequence of `of` tokens.
struct PositionRun {
  int64_t of = 0;
  int64_t first = 0;
  int64_t count = 0;

  auto operator<=>(const PositionRun&) const = default;
};

// What goes through a language model at once: examples in groups of equal length and positions, one
// group behind the other, each [examples, length] row-major.
struct TextPass {
  struct Group {
    int64_t examples = 0;
    int64_t length = 0;
    std::vector<PositionRun> runs;  // as TextPiece's
    int64_t prompt = 0;             // as TextPiece's
  };
  std::vector<int64_t> tokens;   // [N]
  std::vector<int64_t> targets;  // [N]; the token to be predicted, or tasks::kNoTarget
  std::vector<Group> groups;     // by ascending length
  // Which of the pieces that passes are made of each example is.
  std::vector<size_t> pieces;

  int64_t examples() const;
  int64_t Counted() const;  // targets
};

// Tokens and targets of one example.
struct TextPiece {
  std::vector<int64_t> tokens;
  std::vector<int64_t> targets;
  // Whose positions the tokens have, one run after another; empty: those of a sequence of as many
  // tokens.
  std::vector<PositionRun> runs;
  // Tokens of the prompt, where the network attends to prompts whole; otherwise 0.
  int64_t prompt = 0;
};

// Tokens of a pass at most, or one example where that has more. Gradients are added up pass by
// pass, and sums are rounded: this is the same on every device, so that a trial is. It is small
// enough that a pass of 268M parameters fits beside them, and large enough to fill a GPU.
inline constexpr int64_t kPassTokens = 8192;

// The pieces by ascending length, those of one length in their order, in passes that are filled one
// after another.
std::vector<TextPass> MakePasses(const std::vector<TextPiece>& pieces);

class TextExamples : public ExampleSource {
 public:
  // `training` has a packing; where prompts are marked (TextPiece::prompt) its loss counts answers
  // alone, and no example attends to another.
  TextExamples(std::unique_ptr<tasks::TextTask> task, const v1::Training& training,
               bool marks_prompts = false);

  const tasks::TextTask& task() const { return *task_; }

  int64_t InputTokens(int64_t n) const override { return task_->LongestExample(n); }
  int64_t SequenceTokens(int64_t n) const override { return tasks::LongestContinued(*task_, n); }
  int64_t EvaluationSequences(int64_t n, int64_t asked) const override {
    return task_->Questions(n, asked);
  }
  int64_t LongestTraining(const v1::Training& training) const override;
  double ExamplesOfStep(const v1::Training& training) const override;
  // Always INVALID_ARGUMENT.
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

  // The examples of a step (from 1), as packing has it (tasks::PackTrainingBatch, PackEpochBatch),
  // each on its own or, where
  // tokens attend across examples, each sequence as one. Positions are those of the examples or of
  // the sequences, whichever of the two attends.
  std::vector<TextPass> TrainingPasses(uint64_t data_seed, int64_t step) const;

  // Question `number` of `n` in evaluations with this seed.
  tasks::TextExample Question(uint64_t seed, int64_t n, int64_t number) const;

  // The example with the tokens of its answer as targets.
  TextPiece AnswerPiece(const tasks::TextExample& example) const;

 private:
  // Step `step`, the last one of a data seed that was asked for, and its examples.
  struct Reached {
    int64_t step = 0;
    tasks::EpochRange range;
  };

  tasks::PackedBatch BatchOfStep(uint64_t data_seed, int64_t step) const;

  const std::unique_ptr<tasks::TextTask> task_;
  const v1::Training training_;
  const bool marks_prompts_;
  // Of a data set that is gone through in epochs: how many examples a step has depends on those of
  // all steps before it, so that a resumed trial counts them once.
  mutable platform::Mutex mutex_;
  mutable std::map<uint64_t, Reached> reached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_TEXT_EXAMPLES_H_
