// How well language models answer: they continue questions greedily, and what they write is
// compared with the right answers.
#ifndef LENGTHWISE_WORKER_EVALUATION_LANGUAGE_EVALUATOR_H_
#define LENGTHWISE_WORKER_EVALUATION_LANGUAGE_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/encodings/positions.h"
#include "models/networks/language_model.h"
#include "models/parameters/arena.h"
#include "proto/event.pb.h"
#include "tasks/text_task.h"
#include "worker/data/text_examples.h"
#include "worker/evaluation/length_score.h"

namespace lengthwise::worker::evaluation {

// Questions and positions are functions of the evaluation's seed and the size alone: all models see
// the same, at every evaluation, and the positions drawn for a size serve all its questions, from
// the first token to the last of the answer. Keeps references to its arguments.
class LanguageEvaluator {
 public:
  struct Options {
    // Seed of questions and positions.
    uint64_t seed = 0;
    // Size of the network, for the estimate of memory.
    int64_t blocks = 0;
    int64_t d_model = 0;
    // Limit of the key-value cache of the questions that are answered together, in bytes.
    int64_t memory_bytes = int64_t{1} << 30;
  };

  LanguageEvaluator(const data::TextExamples& text, const models::LanguageModel& model,
                    const models::PositionPolicy& positions, const Options& options)
      : text_(text), model_(model), positions_(positions), options_(options) {}

  // Scores the model, a set of one member, on the first `questions` questions of `size`.
  // `keep_going` is asked before each token; when it says no, nothing is returned. Of the options
  // noise is not of text.
  std::optional<LengthScore> Score(const models::ParameterSet& parameters, int64_t size,
                                   int64_t questions, const std::function<bool()>& keep_going,
                                   const ScoreOptions& options = {}) const;

  // Returns the model's continuation of each prompt, up to and including its first end token or
  // until there is no room; nullopt if `keep_going` returned false. The prompts are of questions of
  // `size`; those of one length are answered together.
  std::optional<std::vector<std::vector<int32_t>>> Answer(
      const models::ParameterSet& parameters, int64_t size,
      absl::Span<const tasks::TextExample> questions,
      const std::function<bool()>& keep_going) const;

  // Attention probabilities on question `sequence` (from 0) of `size` and its right answer, with
  // the positions of the first block.
  v1::AttentionMap CaptureAttention(const models::ParameterSet& parameters, int64_t size,
                                    int64_t sequence) const;

 private:
  // Answers questions whose prompts have one length.
  std::optional<std::vector<std::vector<int32_t>>> AnswerTogether(
      const models::ParameterSet& parameters, const at::Tensor& positions,
      absl::Span<const tasks::TextExample* const> questions,
      const std::function<bool()>& keep_going) const;
  // int64 [1, S, T]
  at::Tensor Positions(int64_t size, at::Device device) const;
  // Of the right answers' tokens: the sum over all of them. Where `each` is given, it gets the mean
  // of each question behind what it has.
  std::optional<double> SumLosses(const models::ParameterSet& parameters, int64_t size,
                                  absl::Span<const tasks::TextExample> questions,
                                  const std::function<bool()>& keep_going,
                                  std::vector<float>* each) const;

  const data::TextExamples& text_;
  const models::LanguageModel& model_;
  const models::PositionPolicy& positions_;
  const Options options_;
};

// A pass as the model takes it, for one member.
models::ExampleGroups ToExampleGroups(const data::TextPass& pass, at::Device device);
// Its targets, int64 [N].
at::Tensor TargetsOf(const data::TextPass& pass, at::Device device);
// Sum of the soft-max cross-entropy over the targets that count, in the type of the parameters or
// single precision; `logits` are [1, N, V].
at::Tensor SumCrossEntropy(const at::Tensor& logits, const at::Tensor& targets);
// Its means over the targets of each of the pass's examples, float32 on the CPU.
std::vector<float> MeanCrossEntropies(const data::TextPass& pass, const at::Tensor& logits,
                                      const at::Tensor& targets);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_LANGUAGE_EVALUATOR_H_
