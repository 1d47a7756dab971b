// Defines a model's score at one length.
#ifndef LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
#define LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/event.pb.h"

namespace lengthwise::worker::evaluation {

// Options of scoring a length.
struct ScoreOptions {
  // Standard deviation of the noise on the embeddings of tokens; 0 for none.
  double embedding_noise = 0;
  // True to fill `each_accuracy`, `each_loss` and `wrong_answers`.
  bool each_sequence = false;
  // True to evaluate again on whole numbers and set "rounding_accuracy" in `metrics`. The task must
  // have such sequences (data::Examples::HasWholeNumbers).
  bool rounding = false;
  // Number of answers to keep: to the first sequences, and as many of the first that are not right.
  int32_t answers = 0;
  // True to use validation sequences (data::EvaluationRows).
  bool validation = false;
  // True for sequences of Evaluation.validation, which no other evaluation has.
  bool held_out = false;
};

// Seed of the sequences that an evaluation with this seed scores.
inline uint64_t SequenceSeed(uint64_t seed, const ScoreOptions& options) {
  return options.held_out ? seed ^ (uint64_t{1} << 63) : seed;
}

struct LengthScore {
  // 0 to 1. For classes: sum(mask * correct) / sum(mask) over all sequences of the length. For a
  // regression: the share of sequences whose outputs are all within 0.05 + 5 % of their targets.
  // For text: the share of answers that are right to the last token. NaN if classes have no output
  // with mask 1.
  double accuracy = 0;
  // For classes: mean soft-max cross-entropy over all sequences and output positions, masked or
  // not, in nats. For a regression: the mean over sequences of their outputs' mean squared errors.
  // For text: mean cross-entropy over the tokens of the right answers, each predicted from the
  // right tokens before it.
  double loss = 0;
  // Number of sequences evaluated.
  int64_t sequences = 0;
  // Other measures of the same sequences, by their names in LengthAccuracies.metrics.
  std::map<std::string, double> metrics;
  // For each sequence, in order: the share of its counted outputs that are right (for text, 1 if
  // the whole answer is right, else 0), and its mean loss. Empty unless requested.
  std::vector<float> each_accuracy;
  std::vector<float> each_loss;
  // For text, by ascending sequence. Empty unless requested.
  std::vector<v1::SequenceScores::WrongAnswer> wrong_answers;
  // For text: errors in the answers.
  std::optional<v1::AnswerErrors> errors;
  // By ascending sequence. Empty unless requested.
  std::vector<v1::Answer> answers;
};

// Selects the answers that ScoreOptions::answers asks for.
class AnswerSelection {
 public:
  explicit AnswerSelection(int32_t most) : most_(most) {}

  // Returns the place of the answer to the next sequence, to be filled in; null if it is not kept.
  v1::Answer* Add(int64_t length, bool is_right) {
    const int64_t sequence = sequences_++;
    const bool is_kept_as_wrong = !is_right && wrong_++ < most_;
    if (sequence >= most_ && !is_kept_as_wrong) return nullptr;
    v1::Answer& answer = answers_.emplace_back();
    answer.set_length(static_cast<int32_t>(length));
    answer.set_sequence(static_cast<int32_t>(sequence));
    return &answer;
  }
  std::vector<v1::Answer> answers() const { return answers_; }

 private:
  const int64_t most_;
  int64_t sequences_ = 0, wrong_ = 0;
  std::vector<v1::Answer> answers_;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
