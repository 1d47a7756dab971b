// Tests the evaluation of stored models, and the recording of attention, inputs and projections.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/pack_session.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/testing/pack_runner_fixture.h"
#include "worker/training/testing/recording_session.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Directive = PackSession::Directive;

// A trial that evaluates the model of another session from its checkpoint.
v1::Lease EvaluationLease(const v1::TrialSpecification& evaluation, RecordingSession& trained,
                          RecordingSession& session) {
  v1::Lease lease = LeaseOf({evaluation});
  session.checkpoints(0) = trained.checkpoints(0);
  lease.mutable_trials(0)->mutable_checkpoint();
  lease.mutable_trials(0)->set_checkpoint_step(trained.checkpoints(0).rbegin()->first);
  return lease;
}

TEST(PackRunnerEvaluationTest, EvaluatesATrainedModelWithoutTraining) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_stop_at_accuracy(0.01);
  RecordingSession trained;
  RunLease(LeaseOf({trial}), trained);
  ASSERT_EQ(trained.OutcomeOf(0).training_steps(), 15);

  trial.set_evaluated_trial("experiments/test/trials/0");
  trial.mutable_evaluation()->add_lengths(12);
  RecordingSession session;
  const v1::Lease lease = EvaluationLease(trial, trained, session);
  RunLease(lease, session);
  ASSERT_THAT(Outline(session.events(0)), ElementsAre("final 15", "attention 15", "outcome 15"));
  const v1::LengthAccuracies& again = session.events(0)[0].length_accuracies();
  const std::vector<v1::Event>& events = trained.events(0);
  const v1::LengthAccuracies& once = events[events.size() - 3].length_accuracies();
  EXPECT_THAT(again.lengths(), ElementsAre(3, 6, 9, 12));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(again.accuracies(i), once.accuracies(i)) << i;
  const v1::Outcome outcome = session.OutcomeOf(0);
  EXPECT_EQ(outcome.kind(), v1::Outcome::COMPLETED) << outcome.reason();
  EXPECT_EQ(outcome.training_steps(), 15);
  EXPECT_EQ(outcome.stop_reason(), trained.OutcomeOf(0).stop_reason());
  // A model that makes no step has no training loss.
  ASSERT_FALSE(session.progress(0).empty());
  for (const v1::TrialProgress& progress : session.progress(0)) {
    EXPECT_TRUE(std::isnan(progress.loss())) << progress.loss();
  }
  EXPECT_GT(trained.progress(0).back().loss(), 0);
}

TEST(PackRunnerEvaluationTest, ValidationScoresSequencesOfItsOwn) {
  for (v1::TrialSpecification trial : {TinyTrial(1), TinyTextTrial(1)}) {
    SCOPED_TRACE(trial.task().name());
    const auto final_of = [](const v1::TrialSpecification& specification) {
      RecordingSession session;
      RunLease(LeaseOf({specification}), session);
      for (const v1::Event& event : session.events(0)) {
        if (event.length_accuracies().final()) return event.length_accuracies();
      }
      return v1::LengthAccuracies();
    };
    const v1::LengthAccuracies without = final_of(trial);
    EXPECT_FALSE(without.has_validation_accuracy());
    // The first length of the evaluation, with as many sequences.
    v1::Validation& validation = *trial.mutable_evaluation()->mutable_validation();
    validation.add_lengths(trial.evaluation().lengths(0));
    validation.set_sequences(trial.evaluation().sequences());
    const v1::LengthAccuracies one = final_of(trial);
    EXPECT_NE(one.validation_loss(), without.losses(0));
    EXPECT_NEAR(one.validation_loss(), without.losses(0), 0.5);
    // The evaluation itself is not changed.
    EXPECT_EQ(one.losses(0), without.losses(0));
    EXPECT_EQ(one.losses(1), without.losses(1));
    validation.add_lengths(trial.evaluation().lengths(1));
    const v1::LengthAccuracies both = final_of(trial);
    validation.mutable_lengths()->erase(validation.lengths().begin());
    const v1::LengthAccuracies other = final_of(trial);
    EXPECT_DOUBLE_EQ(both.validation_loss(), (one.validation_loss() + other.validation_loss()) / 2);
    EXPECT_DOUBLE_EQ(both.validation_accuracy(),
                     (one.validation_accuracy() + other.validation_accuracy()) / 2);
  }
}

TEST(PackRunnerEvaluationTest, DrainedEvaluationWritesNothing) {
  v1::TrialSpecification trial = TinyTrial(1);
  RecordingSession trained;
  RunLease(LeaseOf({trial}), trained);
  trial.set_evaluated_trial("experiments/test/trials/0");
  RecordingSession session;
  session.directive = [](int64_t, int64_t asked) {
    return asked >= 2 ? Directive::kDrain : Directive::kContinue;
  };
  RunLease(EvaluationLease(trial, trained, session), session);
  EXPECT_TRUE(session.events(0).empty());
}

TEST(PackRunnerEvaluationTest, EvaluationWithoutCheckpointFailsPermanently) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.set_evaluated_trial("experiments/test/trials/0");
  RecordingSession session;
  RunLease(LeaseOf({trial, TinyTrial(2)}), session);
  EXPECT_THAT(Outline(session.events(0)), ElementsAre("outcome 0"));
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(),
              HasSubstr("no checkpoint of experiments/test/trials/0"));
  EXPECT_EQ(session.History(1), HistoryAlone(TinyTrial(2)));
}

TEST(PackRunnerEvaluationTest, GivenInputsAndProjectionsFollowTheFinalEvaluation) {
  v1::TrialSpecification trial = TinyTrial(1);
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  // Three inputs; the second has a token outside reverse_string's alphabet.
  for (const auto& input : std::vector<std::vector<int32_t>>{{0, 1, 0}, {1, 2}, {1}}) {
    v1::TokenSequence& sequence = *evaluation.add_attention_inputs();
    for (const int32_t token : input) sequence.add_tokens(token);
  }
  evaluation.mutable_projection()->set_fitted_length(6);
  evaluation.mutable_projection()->set_sequences(5);
  for (const int32_t length : {9, 6}) evaluation.mutable_projection()->add_lengths(length);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  std::vector<v1::Event> events = session.events(0);
  events.erase(events.begin(), events.end() - 10);
  ASSERT_THAT(Outline(events), ElementsAre("final 40", "attention 40", "answer 40", "attention 40",
                                           "log 40", "answer 40", "attention 40", "projection 40",
                                           "projection 40", "outcome 40"));

  EXPECT_EQ(events[1].attention_map().input_number(), 0);
  const v1::Answer& answer = events[2].answer();
  EXPECT_EQ(answer.input_number(), 1);
  EXPECT_EQ(answer.input(), "0 1 0");
  EXPECT_EQ(answer.given_size(), 3);
  EXPECT_EQ(answer.expected_size(), 0);
  const v1::AttentionMap& map = events[3].attention_map();
  EXPECT_EQ(map.input_number(), 1);
  EXPECT_EQ(map.length(), 3);
  EXPECT_THAT(map.tokens(), ElementsAre(0, 1, 0, 2, 2, 2));
  EXPECT_EQ(map.probabilities().size(), 1 * 2 * 6 * 6 * sizeof(float));
  EXPECT_EQ(events[4].log_line().severity(), v1::LogLine::WARNING);
  EXPECT_THAT(events[4].log_line().text(), HasSubstr("no answer to input 2: its token 2 is 2"));
  EXPECT_EQ(events[5].answer().input_number(), 3);
  EXPECT_EQ(events[6].attention_map().input_number(), 3);

  const v1::Projection& projection = events[7].projection();
  EXPECT_EQ(projection.length(), 9);
  EXPECT_EQ(projection.fitted_length(), 6);
  EXPECT_EQ(projection.depths(), 2);
  EXPECT_EQ(projection.coordinates().size(), 2 * 5 * 9 * 2 * sizeof(float));
  EXPECT_EQ(events[8].projection().length(), 6);
  // Maps, inputs and projections have no other effect.
  EXPECT_EQ(session.History(0).front(), HistoryAlone(TinyTrial(1)).front());
}

// A model's answers to the sequences of each length; scores and everything else stay.
TEST(PackRunnerEvaluationTest, AnswersAreRecordedForEachLength) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_evaluation()->set_answers(2);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  std::map<int, int> first, by_length;
  v1::LengthAccuracies final;
  for (const v1::Event& event : session.events(0)) {
    if (event.length_accuracies().final()) final = event.length_accuracies();
    if (!event.has_answer()) continue;
    const v1::Answer& answer = event.answer();
    first[answer.length()] += answer.sequence() < 2;
    ++by_length[answer.length()];
    EXPECT_EQ(answer.expected_size(), answer.length());
    EXPECT_EQ(answer.given_size(), answer.length());
    for (int i = 0, wrong = 0; i < answer.given_size(); ++i) {
      const bool is_wrong = answer.given(i) != answer.expected(i);
      EXPECT_EQ(is_wrong, wrong < answer.wrong_size() && answer.wrong(wrong) == i);
      wrong += is_wrong;
    }
  }
  ASSERT_EQ(first.size(), static_cast<size_t>(final.lengths_size()));
  for (const int length : final.lengths()) {
    EXPECT_EQ(first[length], 2);
    EXPECT_LE(by_length[length], 4);
  }
  EXPECT_EQ(session.History(0).front(), HistoryAlone(TinyTrial(1)).front());
}

TEST(PackRunnerEvaluationTest, AnalysesFollowTheFinalEvaluation) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_examples(48);
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  evaluation.set_sequence_scores(true);
  evaluation.set_attention_sequences(2);
  evaluation.set_training_examples(48);
  for (const double deviation : {1e-9, 1000.0}) evaluation.add_embedding_noise(deviation);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  std::vector<v1::Event> events = session.events(0);
  ASSERT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  events.erase(events.begin(), events.end() - 8);
  ASSERT_THAT(Outline(events),
              ElementsAre("final 40", "scores 40", "scores 40", "scores 40", "noise 40",
                          "attention 40", "attention 40", "outcome 40"));

  const v1::LengthAccuracies& accuracies = events[0].length_accuracies();
  ASSERT_TRUE(accuracies.has_training_accuracy());
  EXPECT_GT(accuracies.training_accuracy(), 0.3);  // guessing between two tokens gives a half
  EXPECT_LE(accuracies.training_accuracy(), 1);
  double mean = 0;
  for (int i = 0; i < 3; ++i) {
    const v1::SequenceScores& scores = events[static_cast<size_t>(1 + i)].sequence_scores();
    EXPECT_EQ(scores.length(), accuracies.lengths(i));
    ASSERT_EQ(scores.accuracies_size(), 16);
    ASSERT_EQ(scores.losses_size(), 16);
    double sum = 0;
    for (const float accuracy : scores.accuracies()) sum += accuracy;
    EXPECT_NEAR(sum / 16, accuracies.accuracies(i), 1e-6);
    mean += accuracies.accuracies(i) / 3;
  }
  const v1::NoiseAccuracies& noise = events[4].noise_accuracies();
  ASSERT_THAT(noise.deviations(), ElementsAre(1e-9, 1000.0));
  EXPECT_NEAR(noise.accuracies(0), mean, 1e-9) << "very little noise changes no answer";
  EXPECT_GT(noise.losses(1), noise.losses(0)) << "much noise hides the tokens";
  EXPECT_EQ(events[5].attention_map().sequence(), 0);
  EXPECT_EQ(events[6].attention_map().sequence(), 1);

  // Analyses have no other effect, and a pack's equal its members'.
  v1::TrialSpecification other = trial;
  other.set_weight_seed(2);
  other.set_data_seed(2);
  RecordingSession together;
  RunLease(LeaseOf({other, trial}), together);
  EXPECT_EQ(together.History(1), session.History(0));
  EXPECT_NE(together.History(0), session.History(0));
}

TEST(PackRunnerEvaluationTest, OversizedEventIsDroppedWithAWarning) {
  v1::TrialSpecification trial = TinyTrial(1);
  (*trial.mutable_encoding()->mutable_parameters())["max_position"].set_number_value(2000);
  trial.mutable_training()->set_steps(1);
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  // 2 heads x 800 x 800 x 4 bytes; 2 depths x 1000 x 400 x 2 x 4 bytes.
  evaluation.add_attention_lengths(400);
  evaluation.mutable_projection()->set_fitted_length(2);
  evaluation.mutable_projection()->set_sequences(1000);
  for (const int32_t length : {400, 3}) evaluation.mutable_projection()->add_lengths(length);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  std::vector<v1::Event> events = session.events(0);
  EXPECT_THAT(Outline(events), ElementsAre("point 1", "checkpoint 1", "final 1", "attention 1",
                                           "log 1", "log 1", "projection 1", "outcome 1"));
  EXPECT_THAT(events[4].log_line().text(),
              HasSubstr("no attention map at length 400: for one layer it has "));
  EXPECT_THAT(events[5].log_line().text(),
              HasSubstr("no projection of length 400: it has 6400000 bytes"));
  EXPECT_EQ(events[6].projection().length(), 3);
}

}  // namespace
}  // namespace lengthwise::worker
