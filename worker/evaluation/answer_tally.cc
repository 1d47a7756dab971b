#include "worker/evaluation/answer_tally.h"

#include <cstddef>

namespace lengthwise::worker::evaluation {
namespace {

void CountAt(int64_t place, google::protobuf::RepeatedField<int32_t>& counts) {
  while (counts.size() <= place) counts.Add(0);
  counts.Set(static_cast<int>(place), counts.Get(static_cast<int>(place)) + 1);
}

}  // namespace

void AnswerTally::Add(const tasks::AnswerComparison& comparison) {
  if (each_answer_) AddEach(comparison);
  errors_.set_answers(errors_.answers() + 1);
  if (comparison.is_exact) ++exact_;
  if (comparison.has_right_digits) ++right_digits_;
  while (errors_.wrong_by_place_size() < comparison.places) errors_.add_wrong_by_place(0);
  for (const int32_t place : comparison.wrong_digits) {
    CountAt(place, *errors_.mutable_wrong_by_place());
  }
  CountAt(static_cast<int64_t>(comparison.wrong_digits.size()),
          *errors_.mutable_answers_by_wrong_digits());
  AddCarries(comparison);
  if (!comparison.first_wrong_has_carry.has_value()) return;
  if (*comparison.first_wrong_has_carry) {
    errors_.set_first_wrong_with_carry(errors_.first_wrong_with_carry() + 1);
  } else {
    errors_.set_first_wrong_without_carry(errors_.first_wrong_without_carry() + 1);
  }
}

void AnswerTally::AddEach(const tasks::AnswerComparison& comparison) {
  each_accuracy_.push_back(comparison.is_exact ? 1 : 0);
  // An answer with surplus digits counts as wrong but has no wrong place.
  if (comparison.has_right_digits) return;
  v1::SequenceScores::WrongAnswer& answer = wrong_answers_.emplace_back();
  answer.set_sequence(errors_.answers());
  answer.mutable_places()->Add(comparison.wrong_digits.begin(), comparison.wrong_digits.end());
  answer.set_carry_into_first(comparison.first_wrong_has_carry.value_or(false));
}

void AnswerTally::AddCarries(const tasks::AnswerComparison& comparison) {
  auto& places = *errors_.mutable_places_by_carry();
  auto& wrong = *errors_.mutable_wrong_by_carry();
  const std::vector<int32_t>& distances = comparison.carry_distances;
  for (size_t place = 0; place < distances.size(); ++place) {
    CountAt(distances[place], places);
    if (comparison.wrong_digits.empty() ||
        static_cast<size_t>(comparison.wrong_digits.front()) != place) {
      continue;
    }
    CountAt(distances[place], wrong);
    break;
  }
  while (wrong.size() < places.size()) wrong.Add(0);
}

LengthScore AnswerTally::Score(double loss) const {
  const double answers = errors_.answers() > 0 ? errors_.answers() : 1;
  return {.accuracy = static_cast<double>(exact_) / answers,
          .loss = loss,
          .sequences = errors_.answers(),
          .metrics = {{kDigitsAccuracy, static_cast<double>(right_digits_) / answers}},
          .each_accuracy = each_accuracy_,
          .wrong_answers = wrong_answers_,
          .errors = errors_};
}

}  // namespace lengthwise::worker::evaluation
