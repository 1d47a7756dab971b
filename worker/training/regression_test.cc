// Tests the runner with regressions: the same pipeline as for tokens, with numbers as inputs and
// outputs.
#include <cmath>
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

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::SizeIs;

// Sums of four numbers; `input_positions` and `attention_by` select the network.
v1::TrialSpecification Sums(const std::string& attention_by = "positions", uint64_t seed = 0) {
  v1::TrialSpecification trial = TinyTrial(seed);
  *trial.mutable_task() = {};
  trial.mutable_task()->set_name("cumulative_sum");
  *trial.mutable_network() = {};
  trial.mutable_network()->set_name("positional_attention");
  auto& network = *trial.mutable_network()->mutable_parameters();
  network["blocks"].set_number_value(2);
  network["d_model"].set_number_value(32);
  network["attention_by"].set_string_value(attention_by);
  network["input_positions"].set_bool_value(attention_by == "input");
  *trial.mutable_encoding() = {};
  trial.mutable_encoding()->set_name("one_hot");
  v1::Training& training = *trial.mutable_training();
  training.mutable_lengths()->set_min(4);
  training.mutable_lengths()->set_max(4);
  training.set_examples(400);
  training.set_batch_size(100);
  training.set_clip_norm(0);
  v1::Evaluation& evaluation = *trial.mutable_evaluation();
  evaluation.clear_lengths();
  for (const int32_t scale : {1, 3}) evaluation.add_lengths(scale);
  evaluation.set_seen_up_to(1);
  evaluation.clear_interval_lengths();
  evaluation.add_interval_lengths(3);
  evaluation.clear_attention_lengths();
  evaluation.add_attention_lengths(2);
  evaluation.clear_projection();
  return trial;
}

std::vector<v1::Event> RunAlone(const v1::TrialSpecification& trial) {
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  return session.events(0);
}

const v1::LengthAccuracies& Final(const std::vector<v1::Event>& events) {
  for (const v1::Event& event : events) {
    if (event.has_length_accuracies() && event.length_accuracies().final()) {
      return event.length_accuracies();
    }
  }
  ADD_FAILURE() << "no final evaluation: " << events.back().outcome().reason();
  return v1::LengthAccuracies::default_instance();
}

using Metric = v1::LengthAccuracies::Metric;

// Returns the metric at all lengths; empty if it is missing.
std::vector<double> Values(const v1::LengthAccuracies& evaluation, const std::string& name) {
  for (const Metric& metric : evaluation.metrics()) {
    if (metric.name() == name) return {metric.values().begin(), metric.values().end()};
  }
  return {};
}

TEST(RegressionTest, EvaluatesErrorsAndMetricsByScale) {
  const std::vector<v1::Event> events = RunAlone(Sums());
  EXPECT_EQ(events.back().outcome().kind(), v1::Outcome::COMPLETED);
  const v1::LengthAccuracies& evaluation = Final(events);
  EXPECT_THAT(evaluation.lengths(), ElementsAre(1, 3));
  EXPECT_THAT(evaluation.losses(), Each(Gt(0)));
  EXPECT_THAT(evaluation.metrics(),
              ElementsAre(Property(&Metric::name, "either_closeness_accuracy"),
                          Property(&Metric::name, "mean_absolute_percentage_error"),
                          Property(&Metric::name, "rounding_accuracy"),
                          Property(&Metric::name, "strict_closeness_accuracy")));
  EXPECT_THAT(Values(evaluation, "mean_absolute_percentage_error"), ElementsAre(Gt(0), Gt(0)));
}

TEST(RegressionTest, PointsHaveTheLengthOfTheirBatch) {
  v1::TrialSpecification trial = Sums();
  trial.mutable_training()->mutable_lengths()->set_min(2);
  trial.mutable_training()->clear_examples();
  trial.mutable_training()->set_report_every_steps(1);
  std::set<int32_t> lengths;
  for (const v1::Event& event : RunAlone(trial)) {
    const auto& of_points = event.training_points().lengths();
    lengths.insert(of_points.begin(), of_points.end());
  }
  // With the row of the scratchpad.
  EXPECT_THAT(lengths, ElementsAre(3, 4, 5));
}

// No whole numbers exist below 0.4 at scale 1; some exist below 1.2 at scale 3.
TEST(RegressionTest, RoundingNeedsWholeNumbersAtEveryScale) {
  v1::TrialSpecification trial = Sums();
  (*trial.mutable_task()->mutable_parameters())["bound"].set_number_value(0.4);
  const v1::LengthAccuracies evaluation = Final(RunAlone(trial));
  EXPECT_THAT(Values(evaluation, "strict_closeness_accuracy"), SizeIs(2));
  EXPECT_THAT(Values(evaluation, "rounding_accuracy"), SizeIs(0));
}

TEST(RegressionTest, MapRecordsTheNumbersOfTheInput) {
  for (const v1::Event& event : RunAlone(Sums())) {
    if (!event.has_attention_map()) continue;
    const v1::AttentionMap& map = event.attention_map();
    EXPECT_EQ(map.length(), 2);
    EXPECT_THAT(map.tokens(), ElementsAre(-1, -1, -1, -1, -1));
    ASSERT_EQ(map.numbers_size(), 5);
    EXPECT_NE(map.numbers(0), 0);
    EXPECT_EQ(map.numbers(4), 0);  // the scratchpad
    EXPECT_EQ(map.probabilities().size(), 2 * 2 * 5 * 5 * sizeof(float));
    return;
  }
  FAIL() << "no attention map";
}

TEST(RegressionTest, MapsAreOfVectorsOfAllLengths) {
  v1::TrialSpecification trial = Sums();
  trial.mutable_training()->mutable_lengths()->set_min(2);
  trial.mutable_evaluation()->set_attention_sequences(4);
  std::vector<int> tokens;
  const std::vector<v1::Event> events = RunAlone(trial);
  for (const v1::Event& event : events) {
    if (event.has_attention_map()) tokens.push_back(event.attention_map().numbers_size());
  }
  EXPECT_THAT(tokens, ElementsAre(5, 4, 3, 5));
  EXPECT_EQ(events.back().outcome().kind(), v1::Outcome::COMPLETED);
}

TEST(RegressionTest, RecordsAttentionToGivenNumbers) {
  v1::TrialSpecification trial = Sums("input");
  const std::vector<double> numbers = {1.75, -0.25, 1.25, -2, 0};
  for (const double scale : {1.0, 8.0}) {
    v1::TokenSequence& input = *trial.mutable_evaluation()->add_attention_inputs();
    for (const double number : numbers) input.add_numbers(scale * number);
  }
  *trial.mutable_evaluation()->add_attention_inputs() = NumbersOf({1, 2, 3});
  std::vector<v1::AttentionMap> maps;
  std::vector<v1::Answer> answers;
  std::string warning;
  for (const v1::Event& event : RunAlone(trial)) {
    if (event.has_answer()) answers.push_back(event.answer());
    if (event.attention_map().input_number() > 0) maps.push_back(event.attention_map());
    if (event.has_log_line()) warning = event.log_line().text();
  }
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].input(), "1.75 -0.25 1.25 -2 0");
  EXPECT_FALSE(answers[0].given().empty());
  EXPECT_NE(answers[0].given(0), answers[1].given(0));
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_THAT(maps[0].numbers(), ElementsAreArray(numbers));
  EXPECT_EQ(maps[0].input_number(), 1);
  EXPECT_THAT(maps[1].numbers(), ElementsAre(14, -2, 10, -16, 0));
  EXPECT_EQ(maps[1].input_number(), 2);
  EXPECT_NE(maps[0].probabilities(), maps[1].probabilities());
  EXPECT_THAT(warning, HasSubstr("no answer to input 3: it has 3 numbers"));
}

TEST(RegressionTest, ResumedTrialMatchesUninterrupted) {
  const std::vector<std::string> undisturbed = HistoryAlone(Sums());
  v1::Lease lease = LeaseOf({Sums()});
  RecordingSession session;
  session.directive = [](int64_t, int64_t asked) {
    return asked >= 25 ? PackSession::Directive::kLost : PackSession::Directive::kContinue;
  };
  RunLease(lease, session);
  session.directive = nullptr;
  session.Rewind(lease);
  RunLease(lease, session);
  EXPECT_EQ(session.History(0), undisturbed);
}

TEST(RegressionTest, PositionalAttentionGeneralizesSumsToLargerScales) {
  const auto trained = [](const std::string& attention_by) {
    v1::TrialSpecification trial = Sums(attention_by);
    trial.mutable_training()->set_steps(1200);
    trial.mutable_training()->set_examples(3000);
    trial.set_learning_rate(3e-3);
    trial.mutable_evaluation()->set_every_steps(0);
    trial.mutable_evaluation()->set_sequences(200);
    return Final(RunAlone(trial));
  };
  const v1::LengthAccuracies positional = trained("positions"), standard = trained("input");
  // A sum of up to four numbers from -2 to 2 has a mean square of about 5.
  EXPECT_LT(positional.losses(0), 0.1);
  EXPECT_LT(positional.losses(1), standard.losses(1) / 2);
  // Errors of about 0.1 do not change the nearest whole number, but are too large for sums of real
  // numbers.
  EXPECT_GT(Values(positional, "rounding_accuracy").at(0), 0.5);
  EXPECT_GT(Values(positional, "rounding_accuracy").at(1),
            Values(standard, "rounding_accuracy").at(1));
}

}  // namespace
}  // namespace lengthwise::worker
