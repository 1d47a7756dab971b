// What a model's answers to the questions of one size add up to.
#ifndef LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_
#define LENGTHWISE_WORKER_EVALUATION_ANSWER_TALLY_H_

#include <cstdint>
#include <vector>

#include "proto/event.pb.h"
#include "tasks/text_task.h"
#include "worker/evaluation/length_score.h"

namespace lengthwise::worker::evaluation {

// LengthAccuracies.metrics of text: the share of answers whose digits are right, whatever stands
// between them.
inline constexpr char kDigitsAccuracy[] = "digits_accuracy";

class AnswerTally {
 public:
  // With `each_answer`, also what LengthScore has of the single ones, but for their losses.
  explicit AnswerTally(int64_t size, bool each_answer = false) : each_answer_(each_answer) {
    errors_.set_length(static_cast<int32_t>(size));
  }

  // Answers come in the order of their questions.
  void Add(const tasks::AnswerComparison& comparison);

  // With `loss`, which is not of the answers.
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
