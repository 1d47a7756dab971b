// Supplies language models with training passes and evaluation questions (tasks/text_task.h). The
// axis `n` is the size of a question. No LibTorch.
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

// Run of `count` tokens that have the positions of tokens first .. first + count - 1 in a sequence
// of `of` tokens.
struct PositionRun {
  int64_t of = 0;
  int64_t first = 0;
  int64_t count = 0;

  auto operator<=>(const PositionRun&) const = default;
};

// One forward pass of a language model: groups of examples with equal length and positions. Groups
// are concatenated; each is [examples, length], row-major.
struct TextPass {
  struct Group {
    int64_t examples = 0;
    int64_t length = 0;
    std::vector<PositionRun> runs;  // as TextPiece's
    int64_t prompt = 0;             // as TextPiece's
  };
  std::vector<int64_t> tokens;   // [N]
  std::vector<int64_t> targets;  // [N]; the token to predict, or tasks::kNoTarget
  std::vector<int32_t> ids;      // [N]; tasks::TextTask::Ids, empty if the task has none
  std::vector<Group> groups;     // by ascending length
  // For each example, its index in the pieces given to MakePasses.
  std::vector<size_t> pieces;

  int64_t examples() const;
  int64_t Counted() const;  // targets other than kNoTarget
};

// Tokens and targets of one example, or of one sequence if tokens attend across examples.
struct TextPiece {
  std::vector<int64_t> tokens;
  std::vector<int64_t> targets;
  std::vector<int32_t> ids;  // as TextPass's
  // Positions of the tokens, run after run. Empty: the positions of a sequence of this length.
  std::vector<PositionRun> runs;
  // Tokens of the prompt if the network attends bidirectionally within prompts; otherwise 0.
  int64_t prompt = 0;
};

// Maximum tokens in a pass; a longer example gets a pass of its own. Gradients are summed pass by
// pass and sums are rounded, so the limit must be the same on every device for trials to be
// reproducible. A pass of this size fits in memory beside 268M parameters and still fills a GPU.
inline constexpr int64_t kPassTokens = 8192;

// Fills passes one after another with the pieces, sorted by ascending length. Pieces with equal
// length, runs and prompt keep their order.
std::vector<TextPass> MakePasses(const std::vector<TextPiece>& pieces);

class TextExamples : public ExampleSource {
 public:
  // `training` must have a packing. `marks_prompts` sets TextPiece::prompt; it requires a loss over
  // answers only and no attention across examples.
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
  // tasks::SizeOfPrompt is the length.
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

  // Returns the passes of a step (from 1), packed by tasks::PackTrainingBatch or PackEpochBatch.
  // Each example is a piece of its own or, if tokens attend across examples, each packed sequence
  // is one. Positions restart with every example or run through the sequence, as the packing says,
  // independently of attention.
  std::vector<TextPass> TrainingPasses(uint64_t data_seed, int64_t step) const;

  // Returns question `number` of size `n` in evaluations with this seed.
  tasks::TextExample Question(uint64_t seed, int64_t n, int64_t number) const {
    return tasks::EvaluationQuestion(*task_, seed, n, number);
  }

  // Returns the example with only the tokens of its answer as targets.
  TextPiece AnswerPiece(const tasks::TextExample& example) const;

 private:
  // The step last requested for a data seed, and its range of examples.
  struct Reached {
    int64_t step = 0;
    tasks::EpochRange range;
  };

  tasks::PackedBatch BatchOfStep(uint64_t data_seed, int64_t step) const;

  const std::unique_ptr<tasks::TextTask> task_;
  const v1::Training training_;
  const bool marks_prompts_;
  // For data sets read in epochs. A step's range of examples depends on all steps before it, so a
  // resumed trial computes the earlier ranges once and caches the last one here.
  mutable platform::Mutex mutex_;
  mutable std::map<uint64_t, Reached> reached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_TEXT_EXAMPLES_H_
