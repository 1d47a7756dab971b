// What a model's answers to the questions of one size add up to.
#ifndef LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_
#define LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_

#include <cstdint>

#include "proto/event.pb.h"
#include "tasks/text.h"
#include "worker/evaluation/length_score.h"

namespace lengthwise::worker::evaluation {

// LengthAccuracies.metrics of text: the share of answers whose digits are right, whatever stands
// between them.
inline constexpr char kDigitsAccuracy[] = "digits_accuracy";

class AnswerTally {
 public:
  explicit AnswerTally(int64_t size) { errors_.set_length(static_cast<int32_t>(size)); }

  void Add(const tasks::AnswerComparison& comparison);

  // With `loss`, which is not of the answers.
  LengthScore Score(double loss) const;

 private:
  v1::AnswerErrors errors_;
  int64_t exact_ = 0;
  int64_t right_digits_ = 0;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_
