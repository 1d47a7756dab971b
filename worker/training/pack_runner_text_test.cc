// Tests the runner with text tasks.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/testing/pack_runner_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Directive = PackSession::Directive;

TEST(PackRunnerTextTest, EmitsEveryFactInOrder) {
  RecordingSession session;
  RunLease(LeaseOf({TinyTextTrial()}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  const std::vector<std::string> outline = Outline(session.events(0));
  EXPECT_THAT(std::vector<std::string>(outline.end() - 6, outline.end()),
              ElementsAre("checkpoint 40", "final 40", "errors 40", "errors 40", "attention 40",
                          "outcome 40"));
  const std::vector<v1::Event>& events = session.events(0);
  for (const v1::Event& event : events) {
    for (const int32_t length : event.training_points().lengths()) {
      EXPECT_EQ(length, 64) << "tokens of a sequence";
    }
    if (!event.has_length_accuracies()) continue;
    const v1::LengthAccuracies& accuracies = event.length_accuracies();
    EXPECT_THAT(accuracies.lengths(), ElementsAre(2, 4));
    EXPECT_EQ(accuracies.sequences(), accuracies.final() ? 16 : 4);
    ASSERT_EQ(accuracies.metrics_size(), 1);
    EXPECT_EQ(accuracies.metrics(0).name(), "digits_accuracy");
    ASSERT_EQ(accuracies.metrics(0).values_size(), 2);
    for (int i = 0; i < 2; ++i) {
      EXPECT_GE(accuracies.metrics(0).values(i), accuracies.accuracies(i));
      EXPECT_GT(accuracies.losses(i), 0);
    }
  }
  const v1::AnswerErrors& errors = events[events.size() - 3].answer_errors();
  EXPECT_EQ(errors.length(), 4);
  EXPECT_EQ(errors.answers(), 16);
  EXPECT_LE(errors.wrong_by_place_size(), 5);
  int answers = 0;
  for (const int32_t count : errors.answers_by_wrong_digits()) answers += count;
  EXPECT_EQ(answers, 16);

  // "<h>a<h>a<h>a+<h>b<h>b<h>b=<h>c<h>c<h>c<eos>"
  const v1::AttentionMap& map = events[events.size() - 2].attention_map();
  EXPECT_EQ(map.length(), 2);
  EXPECT_EQ(map.tokens_size(), 21);
  EXPECT_EQ(map.positions_size(), 21);
  EXPECT_EQ(map.probabilities().size(), 2 * 21 * 21 * sizeof(float));
}

TEST(PackRunnerTextTest, ShowsAnswersAsText) {
  v1::TrialSpecification trial = TinyTextTrial();
  trial.mutable_evaluation()->set_answers(16);
  trial.mutable_evaluation()->set_sequence_scores(true);
  trial.mutable_evaluation()->add_attention_inputs()->set_text("<h0>1<h1>2<h2>0+<h0>7<h1>0<h2>0=");
  trial.mutable_evaluation()->add_attention_inputs()->set_text("12-7=");
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  std::map<int, v1::SequenceScores> scores;
  std::vector<v1::Answer> own;
  std::string warning;
  int answers = 0, maps = 0;
  for (const v1::Event& event : session.events(0)) {
    if (event.has_sequence_scores()) {
      scores[event.sequence_scores().length()] = event.sequence_scores();
    }
    if (event.has_log_line()) warning = event.log_line().text();
    maps += event.attention_map().input_number() > 0;
    if (!event.has_answer()) continue;
    const v1::Answer& answer = event.answer();
    if (answer.input_number() > 0) {
      own.push_back(answer);
      continue;
    }
    ++answers;
    // "<h>a<h>a<h>a+<h>b<h>b<h>b=" and the sum's digits, each with its hint.
    EXPECT_EQ(answer.input().back(), '=');
    EXPECT_EQ(answer.expected_size(), 2 * (answer.length() + 1));
    EXPECT_EQ(answer.separator(), "");
    const bool is_right = scores.at(answer.length()).accuracies(answer.sequence()) == 1;
    EXPECT_EQ(answer.wrong().empty(), is_right);
  }
  EXPECT_EQ(answers, 2 * 16);
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].input(), "<h0>1<h1>2<h2>0+<h0>7<h1>0<h2>0=");
  EXPECT_EQ(own[0].length(), 2);
  EXPECT_FALSE(own[0].given().empty());
  EXPECT_EQ(maps, 1);
  EXPECT_THAT(warning, HasSubstr("no answer to input 2: it has \"-\"; additions have digits"));
}

TEST(PackRunnerTextTest, ScoresSingleQuestions) {
  v1::TrialSpecification trial = TinyTextTrial();
  trial.mutable_evaluation()->set_sequence_scores(true);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  std::map<int, v1::SequenceScores> scores;
  std::map<int, v1::AnswerErrors> errors;
  for (const v1::Event& event : session.events(0)) {
    if (event.has_sequence_scores()) {
      scores[event.sequence_scores().length()] = event.sequence_scores();
    }
    if (event.has_answer_errors()) errors[event.answer_errors().length()] = event.answer_errors();
  }
  ASSERT_EQ(scores.size(), 2u);
  for (const auto& [digits, of_digits] : scores) {
    EXPECT_EQ(of_digits.accuracies_size(), 16);
    EXPECT_EQ(of_digits.losses_size(), 16);
    for (const float accuracy : of_digits.accuracies()) EXPECT_TRUE(accuracy == 0 || accuracy == 1);
    std::vector<int> wrong_by_place;
    for (const auto& answer : of_digits.wrong_answers()) {
      EXPECT_EQ(of_digits.accuracies(answer.sequence()), 0);
      for (const int place : answer.places()) {
        if (static_cast<size_t>(place) >= wrong_by_place.size()) {
          wrong_by_place.resize(static_cast<size_t>(place) + 1);
        }
        ++wrong_by_place[static_cast<size_t>(place)];
      }
    }
    const v1::AnswerErrors& of_all = errors.at(digits);
    // Places that are right in all answers follow.
    ASSERT_GE(static_cast<size_t>(of_all.wrong_by_place_size()), wrong_by_place.size());
    wrong_by_place.resize(static_cast<size_t>(of_all.wrong_by_place_size()));
    EXPECT_THAT(of_all.wrong_by_place(), ElementsAreArray(wrong_by_place));
    ASSERT_GE(of_all.wrong_by_carry_size(), 1);
    EXPECT_EQ(of_all.wrong_by_carry(0), of_all.first_wrong_without_carry());
    EXPECT_EQ(std::accumulate(of_all.wrong_by_carry().begin(), of_all.wrong_by_carry().end(), 0),
              of_all.first_wrong_with_carry() + of_all.first_wrong_without_carry());
  }
}

// The lease is lost at points throughout the run: between steps, while generating answers in the
// evaluations during training, and in the final evaluation.
TEST(PackRunnerTextTest, ResumedTrialMatchesUninterrupted) {
  const v1::TrialSpecification trial = TinyTextTrial(1);
  RecordingSession undisturbed;
  RunLease(LeaseOf({trial}), undisturbed);
  ASSERT_GT(undisturbed.asked(), 80) << "asked before every token";
  for (int64_t lost_at = 5; lost_at < undisturbed.asked(); lost_at += 13) {
    v1::Lease lease = LeaseOf({trial});
    RecordingSession session;
    session.directive = [=](int64_t, int64_t asked) {
      return asked >= lost_at ? Directive::kLost : Directive::kContinue;
    };
    RunLease(lease, session);
    EXPECT_LE(session.asked(), lost_at + 2) << "stops at once";
    session.directive = nullptr;
    session.Rewind(lease);
    RunLease(lease, session);
    EXPECT_EQ(session.History(0), undisturbed.History(0)) << lost_at;
  }
}

TEST(PackRunnerTextTest, PackIsBitIdenticalToItsMembers) {
  const std::vector<v1::TrialSpecification> trials = {TinyTextTrial(1), TinyTextTrial(2)};
  RecordingSession session;
  RunLease(LeaseOf(trials), session);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(session.History(i), HistoryAlone(trials[i])) << i;
}

TEST(PackRunnerTextTest, RejectsSizesWithoutExamples) {
  v1::TrialSpecification trial = TinyTextTrial();
  trial.mutable_evaluation()->add_lengths(102);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("1 to 101 digits with index hints"));
}

}  // namespace
}  // namespace lengthwise::worker
