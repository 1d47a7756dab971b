// How well a model does at one length.
#ifndef LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
#define LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "proto/event.pb.h"

namespace lengthwise::worker::evaluation {

struct LengthScore {
  // sum(mask * correct) / sum(mask) over all sequences of the length, 0 to 1; of text the share of
  // answers that are right to the last token.
  double accuracy = 0;
  // Mean soft-max cross-entropy over all sequences and output positions, masked or not, nats; of
  // text over the tokens of the right answers, each after the right ones before it.
  double loss = 0;
  // Evaluated.
  int64_t sequences = 0;
  // Other measures of the same sequences, by their names in LengthAccuracies.metrics.
  std::map<std::string, double> metrics;
  // Of text: what is wrong with the answers.
  std::optional<v1::AnswerErrors> errors;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_LENGTH_SCORE_H_
