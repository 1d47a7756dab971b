// Accumulates a model's answers to the questions of one size into a score and a breakdown of
// errors.
#ifndef LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_
#define LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_

#include <cstdint>
#include <vector>

#include "proto/event.pb.h"
#include "tasks/text_task.h"
#include "worker/evaluation/length_score.h"

namespace lengthwise::worker::evaluation {

// Key in LengthAccuracies.metrics for text: the share of answers whose digits are right, whatever
// stands between them.
inline constexpr char kDigitsAccuracy[] = "digits_accuracy";

class AnswerTally {
 public:
  // `each_answer` also fills LengthScore::each_accuracy and wrong_answers.
  explicit AnswerTally(int64_t size, bool each_answer = false) : each_answer_(each_answer) {
    errors_.set_length(static_cast<int32_t>(size));
  }

  // Adds the answer to the next question, in the order of the questions.
  void Add(const tasks::AnswerComparison& comparison);

  // Returns the score with `loss`, which callers measure on the right answers instead of the
  // model's.
  LengthScore Score(double loss) const;

 private:
  void AddEach(const tasks::AnswerComparison& comparison);
  void AddCarries(const tasks::AnswerComparison& comparison);

  v1::AnswerErrors errors_;
  int64_t exact_ = 0;
  int64_t right_digits_ = 0;
  const bool each_answer_;
  std::vector<float> each_accuracy_;
  std::vector<v1::SequenceScores::WrongAnswer> wrong_answers_;
};

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_
