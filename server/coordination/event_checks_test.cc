#include "server/coordination/event_checks.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using testing::HasSubstr;

absl::Status Check(const v1::StreamEventsRequest& request) {
  const auto parts = PartsOf(request);
  return parts.ok() ? CheckEvents(parts->front()) : parts.status();
}

// The problem with an event of this fact. Empty if there is none.
std::string Problem(const v1::Event& fact) {
  v1::StreamEventsRequest request;
  *request.add_events() = fact;
  request.mutable_events(0)->set_sequence(1);
  return std::string(Check(request).message());
}

TEST(EventChecksTest, SoManyEventsAtOnceAreRefused) {
  v1::StreamEventsRequest request;
  for (int i = 1; i <= 10'001; ++i) request.add_events()->set_sequence(i);
  EXPECT_THAT(std::string(Check(request).message()),
              HasSubstr("events: has 10001; accepted are at most 10000"));
}

TEST(EventChecksTest, BatchesAreOfAtMost256Trials) {
  v1::StreamEventsRequest request;
  for (int i = 0; i < 256; ++i) {
    for (int sequence = 1; sequence <= 2; ++sequence) {
      request.add_events()->set_trial(absl::StrCat("trial ", i));
    }
  }
  const auto parts = PartsOf(request);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->size(), 256u);
  EXPECT_EQ(parts->back().size(), 2u);
  EXPECT_EQ(parts->back().back(), &request.events(511));
  request.add_events()->set_trial("trial 0");
  EXPECT_EQ(PartsOf(request).status().message(), "events: are of more than 256 trials");
}

v1::Event Attention() {
  v1::Event event;
  v1::AttentionMap& map = *event.mutable_attention_map();
  map.set_length(2);
  for (int i = 0; i < 3; ++i) {
    map.add_tokens(i);
    map.add_positions(i * 10);
  }
  map.set_layers(5);
  map.set_heads(4);
  map.set_probabilities(std::string(5 * 4 * 3 * 3 * sizeof(float), '\0'));
  return event;
}

v1::Event Projected() {
  v1::Event event;
  v1::Projection& projection = *event.mutable_projection();
  projection.set_fitted_length(40);
  projection.set_length(150);
  projection.set_sequences(3);
  projection.set_tokens(150);
  projection.set_depths(2);
  projection.set_coordinates(std::string(2 * 3 * 150 * 2 * sizeof(float), '\0'));
  for (int i = 0; i < 4; ++i) projection.add_explained_variance(0.25);
  return event;
}

v1::Event Scored() {
  v1::Event event;
  v1::SequenceScores& scores = *event.mutable_sequence_scores();
  scores.set_length(5);
  for (int i = 0; i < 4; ++i) {
    scores.add_accuracies(i % 2 == 0 ? 1.0F : 0.0F);
    scores.add_losses(0.5F);
  }
  for (const int sequence : {1, 3}) {
    v1::SequenceScores::WrongAnswer& answer = *scores.add_wrong_answers();
    answer.set_sequence(sequence);
    answer.add_places(0);
    answer.add_places(5);
  }
  return event;
}

TEST(EventChecksTest, SequencesNearTheLargestAreRefused) {
  v1::StreamEventsRequest request;
  for (const int64_t sequence :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max() - 1}) {
    request.clear_events();
    for (int i = 0; i < 3; ++i) request.add_events()->set_sequence(sequence);
    EXPECT_EQ(Check(request).message(), "events[0]: sequence is above 2^62");
  }
}

TEST(EventChecksTest, WrongAnswersNameScoredSequences) {
  EXPECT_EQ(Problem(Scored()), "");
  v1::Event too_many_digits = Scored();
  too_many_digits.mutable_sequence_scores()->mutable_wrong_answers(0)->clear_places();
  EXPECT_EQ(Problem(too_many_digits), "");

  v1::Event wrong = Scored();
  wrong.mutable_sequence_scores()->add_losses(1);
  EXPECT_THAT(Problem(wrong), HasSubstr("the columns of sequence_scores differ in length"));
  for (const int sequence : {-1, 3, 0}) {
    wrong = Scored();
    wrong.mutable_sequence_scores()
        ->mutable_wrong_answers(sequence == -1 ? 0 : 1)
        ->set_sequence(sequence == 3 ? 4 : sequence);
    EXPECT_THAT(Problem(wrong), HasSubstr("sequence_scores.wrong_answers")) << sequence;
  }
  wrong = Scored();
  wrong.mutable_sequence_scores()->mutable_wrong_answers(1)->set_places(1, 0);
  EXPECT_THAT(Problem(wrong), HasSubstr("places do not ascend from 0"));
  wrong.mutable_sequence_scores()->mutable_wrong_answers(1)->set_places(0, -1);
  EXPECT_THAT(Problem(wrong), HasSubstr("places do not ascend from 0"));
}

TEST(EventChecksTest, WrongSymbolsOfAnAnswerExist) {
  v1::Event event;
  v1::Answer& answer = *event.mutable_answer();
  EXPECT_THAT(Problem(event), HasSubstr("answer.length is below 1"));
  answer.set_length(2);
  answer.add_expected("1");
  answer.add_expected("0");
  answer.add_given("0");
  answer.add_wrong(0);
  answer.add_wrong(1);
  EXPECT_EQ(Problem(event), "");
  answer.add_wrong(2);
  EXPECT_THAT(Problem(event), HasSubstr("answer.wrong names a symbol that does not exist"));
  answer.set_wrong(2, 1);
  EXPECT_THAT(Problem(event), HasSubstr("answer.wrong does not ascend from 0"));
}

TEST(EventChecksTest, AnswerErrorsByCarryHaveColumnsOfOneLength) {
  v1::Event event;
  event.mutable_answer_errors()->set_length(5);
  EXPECT_EQ(Problem(event), "") << "older workers send this form";
  event.mutable_answer_errors()->add_places_by_carry(3);
  EXPECT_THAT(Problem(event), HasSubstr("the columns of answer_errors by carry differ in length"));
  event.mutable_answer_errors()->add_wrong_by_carry(1);
  EXPECT_EQ(Problem(event), "");
}

TEST(EventChecksTest, NoiseAccuraciesHaveColumnsOfOneLength) {
  v1::Event event;
  event.mutable_noise_accuracies()->add_deviations(0.1F);
  event.mutable_noise_accuracies()->add_accuracies(1);
  EXPECT_THAT(Problem(event), HasSubstr("the columns of noise_accuracies differ in length"));
  event.mutable_noise_accuracies()->add_losses(0);
  EXPECT_EQ(Problem(event), "");
}

TEST(EventChecksTest, CheckpointsHaveAHashAndASize) {
  v1::Event event;
  v1::Checkpoint& checkpoint = *event.mutable_checkpoint();
  checkpoint.set_sha256("ABC");
  EXPECT_THAT(Problem(event), HasSubstr("checkpoint.sha256 is not 64 lower-case hexadecimal"));
  checkpoint.set_sha256(std::string(64, 'a'));
  EXPECT_THAT(Problem(event), HasSubstr("checkpoint.size_bytes is below 1"));
  checkpoint.set_size_bytes(1);
  EXPECT_EQ(Problem(event), "");
}

TEST(EventChecksTest, OnlyFactsOfWorkersAreTaken) {
  v1::Event event;
  EXPECT_THAT(Problem(event), HasSubstr("no fact is set"));
  event.mutable_state_change();
  EXPECT_THAT(Problem(event), HasSubstr("only the server may send changes of state"));
  event.mutable_outcome()->set_kind(static_cast<v1::Outcome::Kind>(99));
  EXPECT_THAT(Problem(event), HasSubstr("outcome.kind is unknown"));
  event.mutable_training_points();
  event.set_step(-1);
  EXPECT_THAT(Problem(event), HasSubstr("step is negative"));
}

TEST(EventChecksTest, OutcomeEndsItsAttempt) {
  v1::StreamEventsRequest request;
  request.add_events()->mutable_outcome()->set_kind(v1::Outcome::COMPLETED);
  request.mutable_events(0)->set_sequence(4);
  EXPECT_EQ(Check(request), absl::OkStatus());
  *request.add_events() = request.events(0);
  request.mutable_events(1)->set_sequence(5);
  EXPECT_THAT(std::string(Check(request).message()),
              HasSubstr("events[0]: an outcome must be the last event of its attempt"));
}

TEST(EventChecksTest, AttentionMapMustMatchItsSizes) {
  EXPECT_EQ(Problem(Attention()), "");
  v1::Event own_input = Attention();
  own_input.mutable_attention_map()->set_input_number(2);
  EXPECT_EQ(Problem(own_input), "");

  v1::Event wrong = Attention();
  wrong.mutable_attention_map()->mutable_probabilities()->pop_back();
  EXPECT_THAT(Problem(wrong), HasSubstr("events[0]: attention_map.probabilities are not"));
  wrong = Attention();
  wrong.mutable_attention_map()->add_positions(30);
  EXPECT_THAT(Problem(wrong), HasSubstr("positions and tokens differ in length"));
  wrong = Attention();
  wrong.mutable_attention_map()->set_input_number(-1);
  EXPECT_THAT(Problem(wrong), HasSubstr("input_number is negative"));
  wrong = Attention();
  wrong.mutable_attention_map()->set_length(0);
  EXPECT_THAT(Problem(wrong), HasSubstr("attention_map.length is below 1"));
  wrong.mutable_attention_map()->Clear();
  wrong.mutable_attention_map()->set_length(2);
  EXPECT_NE(Problem(wrong), "");
}

TEST(EventChecksTest, ProjectionMustMatchItsSizes) {
  EXPECT_EQ(Problem(Projected()), "");
  v1::Event wrong = Projected();
  wrong.mutable_projection()->set_depths(3);
  EXPECT_THAT(Problem(wrong), HasSubstr("events[0]: projection.coordinates are not"));
  wrong = Projected();
  wrong.mutable_projection()->add_explained_variance(0);
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.explained_variance is not"));
  wrong = Projected();
  wrong.mutable_projection()->set_fitted_length(0);
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.fitted_length is below 1"));
  wrong = Projected();
  wrong.mutable_projection()->set_length(-3);
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.length is below 1"));
}

TEST(EventChecksTest, OverflowingSizesAreRefused) {
  v1::Event wrong = Projected();
  v1::Projection& projection = *wrong.mutable_projection();
  // 2^30 * 2^30 * 2^30 * 2 is 0 modulo 2^64.
  projection.set_depths(1 << 30);
  projection.set_sequences(1 << 30);
  projection.set_tokens(1 << 30);
  projection.clear_coordinates();
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.coordinates are not"));
  projection.set_depths(std::numeric_limits<int32_t>::min());
  EXPECT_THAT(Problem(wrong), HasSubstr("projection.coordinates are not"));
}

}  // namespace
}  // namespace lengthwise::server
