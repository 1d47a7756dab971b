// How well a model does at one length.
#ifndef LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
#define LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/event.pb.h"

namespace lengthwise::worker::evaluation {

// What scoring a length is asked for beside the score of all its sequences.
struct ScoreOptions {
  // Standard deviation of the noise on the embeddings of tokens; 0 for none.
  double embedding_noise = 0;
  // Whether `each_accuracy`, `each_loss` and `wrong_answers` are filled.
  bool each_sequence = false;
  // Whether the model is asked again, for whole numbers, and `metrics` have "rounding_accuracy".
  // The task must have such sequences (data::Examples::HasWholeNumbers).
  bool rounding = false;
  // Whether the sequences are those of validation (data::EvaluationRows).
  bool validation = false;
};

struct LengthScore {
  // sum(mask * correct) / sum(mask) over all sequences of the length, 0 to 1; of a regression the
  // share of sequences whose outputs are all within 0.05 + 5 % of their targets; of text the share
  // of answers that are right to the last token.
  double accuracy = 0;
  // Mean soft-max cross-entropy over all sequences and output positions, masked or not, nats; of a
  // regression the mean over sequences of their outputs' mean squared errors; of text over the
  // tokens of the right answers, each after the right ones before it.
  double loss = 0;
  // Evaluated.
  int64_t sequences = 0;
  // Other measures of the same sequences, by their names in LengthAccuracies.metrics.
  std::map<std::string, double> metrics;
  // Of the single sequences, in order: the share of its outputs that count and are right (of text 1
  // where the answer is right to the last token, otherwise 0), and its mean loss. Empty unless
  // asked for.
  std::vector<float> each_accuracy;
  std::vector<float> each_loss;
  // Of text, by ascending sequence. Empty unless asked for.
  std::vector<v1::SequenceScores::WrongAnswer> wrong_answers;
  // Of text: what is wrong with the answers.
  std::optional<v1::AnswerErrors> errors;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
