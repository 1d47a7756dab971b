// Scores language models: continues questions greedily and compares the continuations with the
// right answers.
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

// Questions and positions are functions of the evaluation's seed and the size alone, so all models
// see the same ones at every evaluation. All questions of a size share its drawn positions, from
// their first token to the last token of the longest possible text (tasks::LongestContinued), of
// which a text has the first. Keeps references to its arguments.
class LanguageEvaluator {
 public:
  struct Options {
    // Seed of questions and positions.
    uint64_t seed = 0;
    // Size of the network, for the memory estimate.
    int64_t blocks = 0;
    int64_t d_model = 0;
    // Limit on the key-value cache of questions answered together, in bytes.
    int64_t memory_bytes = int64_t{1} << 30;
  };

  LanguageEvaluator(const data::TextExamples& text, const models::LanguageModel& model,
                    const models::PositionPolicy& positions, const Options& options)
      : text_(text), model_(model), positions_(positions), options_(options) {}

  // Scores a set of one member on the first `questions` questions of `size`. Calls `keep_going`
  // before each token; returns nullopt if it returns false. Ignores ScoreOptions::embedding_noise,
  // which does not apply to text.
  std::optional<LengthScore> Score(const models::ParameterSet& parameters, int64_t size,
                                   int64_t questions, const std::function<bool()>& keep_going,
                                   const ScoreOptions& options = {}) const;

  // Returns the model's continuation of each prompt, up to its first end token (inclusive) or the
  // longest sequence; nullopt if `keep_going` returned false. The prompts are of questions of
  // `size`; the first is number `first`. Prompts of equal length are answered together.
  std::optional<std::vector<std::vector<int32_t>>> Answer(
      const models::ParameterSet& parameters, int64_t size,
      absl::Span<const tasks::TextExample> questions, const std::function<bool()>& keep_going,
      int64_t first = 0) const;

  // Returns the attention probabilities on question `sequence` (from 0) of `size` and its right
  // answer, with the positions of the first block.
  v1::AttentionMap CaptureAttention(const models::ParameterSet& parameters, int64_t size,
                                    int64_t sequence) const;

  // For a user's prompt: what the model answers, and the attention to the prompt and this answer.
  v1::Answer Predict(const models::ParameterSet& parameters,
                     const data::GivenSequence& given) const;
  v1::AttentionMap CaptureAttention(const models::ParameterSet& parameters,
                                    const data::GivenSequence& given) const;

 private:
  // The prompt with the model's answer.
  tasks::TextExample Continued(const models::ParameterSet& parameters,
                               const data::GivenSequence& given) const;
  v1::AttentionMap Capture(const models::ParameterSet& parameters, int64_t size, int64_t number,
                           const tasks::TextExample& example) const;
  // Fills in the prompt, and the model's tokens up to its end token as text.
  void Show(absl::Span<const int32_t> prompt, absl::Span<const int32_t> given,
            v1::Answer& answer) const;
  // A question of an evaluation, and its number.
  struct Asked {
    const tasks::TextExample* question;
    int64_t number;
  };
  // Answers questions whose prompts have equal length.
  std::optional<std::vector<std::vector<int32_t>>> AnswerTogether(
      const models::ParameterSet& parameters, int64_t size, absl::Span<const Asked> questions,
      const std::function<bool()>& keep_going) const;
  // Double [1, S, T], of sequences that share them.
  at::Tensor Positions(int64_t size, at::Device device) const;
  // The positions of `tokens`, a question's prompt with an answer, where each question has its own.
  std::vector<double> OwnPositions(int64_t size, const Asked& asked,
                                   absl::Span<const int32_t> tokens) const;
  // Positions for a pass of the questions, of which the first is number `first`; sets `groups` to
  // find them.
  at::Tensor PositionsOfPass(int64_t size, const data::TextPass& pass,
                             absl::Span<const tasks::TextExample> questions, int64_t first,
                             at::Device device, models::ExampleGroups& groups) const;
  // Returns the summed cross-entropy of the right answers' tokens; nullopt if `keep_going` returned
  // false. Appends the mean of each question to `each` unless it is null.
  std::optional<double> SumLosses(const models::ParameterSet& parameters, int64_t size,
                                  absl::Span<const tasks::TextExample> questions, int64_t first,
                                  const std::function<bool()>& keep_going,
                                  std::vector<float>* each) const;

  const data::TextExamples& text_;
  const models::LanguageModel& model_;
  const models::PositionPolicy& positions_;
  const Options options_;
};

// Converts a pass to the model's input for one member.
models::ExampleGroups ToExampleGroups(const data::TextPass& pass, at::Device device);
// Returns the pass's targets, int64 [N].
at::Tensor TargetsOf(const data::TextPass& pass, at::Device device);
// Returns the summed soft-max cross-entropy over the counted targets, in the parameters' type but
// at least single precision. `logits` is [1, N, V].
at::Tensor SumCrossEntropy(const at::Tensor& logits, const at::Tensor& targets);
// Returns the mean cross-entropy over the counted targets of each example in the pass, in float32.
std::vector<float> MeanCrossEntropies(const data::TextPass& pass, const at::Tensor& logits,
                                      const at::Tensor& targets);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_LANGUAGE_EVALUATOR_H_
