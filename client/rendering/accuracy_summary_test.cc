#include "client/rendering/accuracy_summary.h"

#include <cmath>
#include <sstream>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

v1::Trial MakeTrial(const std::string& encoding, uint64_t seed) {
  v1::Trial trial;
  trial.set_name("experiments/e-1/trials/" + encoding + "-seed" + std::to_string(seed));
  v1::TrialSpecification& specification = *trial.mutable_specification();
  specification.mutable_task()->set_name("bucket_sort");
  specification.mutable_network()->set_name("encoder");
  specification.mutable_encoding()->set_name("sin_cos");
  specification.mutable_encoding()->set_label(encoding);
  specification.set_learning_rate(0.001);
  specification.set_weight_seed(seed);
  specification.set_data_seed(seed);
  specification.mutable_evaluation()->set_seen_up_to(2);
  return trial;
}

// Accuracies at the lengths 1, 2, 3, ...
void AddFinal(v1::QueryLengthAccuraciesResponse& response, const v1::Trial& trial,
              const std::vector<double>& accuracies) {
  auto& evaluation = *response.add_evaluations();
  evaluation.set_trial(trial.name());
  evaluation.set_step(100);
  evaluation.mutable_accuracies()->set_final(true);
  evaluation.mutable_accuracies()->set_sequences(500);
  for (size_t i = 0; i < accuracies.size(); ++i) {
    evaluation.mutable_accuracies()->add_lengths(static_cast<int32_t>(i) + 1);
    evaluation.mutable_accuracies()->add_accuracies(accuracies[i]);
    evaluation.mutable_accuracies()->add_losses(0.5);
  }
}

TEST(GroupLengthsTest, PrefersGroupsOfEqualSize) {
  const auto groups = GroupLengths(20, 5);
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[1].begin, 4u);
  EXPECT_EQ(groups[1].end, 8u);
  EXPECT_EQ(GroupLengths(20, 6).size(), 5u);
  EXPECT_EQ(GroupLengths(3, 8).size(), 3u);
  EXPECT_EQ(GroupLengths(13, 5).size(), 5u);  // a prime number: as many as there may be
}

TEST(AccuracySummaryTest, AveragesSeedsAndKeepsSeenAndUnseenApart) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("sin_cos", 1)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0, 0.8, 0.4, 0.2});
  AddFinal(response, trials[1], {1.0, 0.6, 0.2, 0.0});
  const AccuracySummary summary = Summarize(trials, response);
  ASSERT_EQ(summary.rows.size(), 1u);
  EXPECT_EQ(summary.rows[0].trials, 2);
  EXPECT_DOUBLE_EQ(summary.rows[0].accuracies.at(2), 0.7);
  EXPECT_DOUBLE_EQ(summary.rows[0].seen, 0.85);
  EXPECT_DOUBLE_EQ(summary.rows[0].unseen, 0.2);
  // Means of the trials over unseen lengths are 0.3 and 0.1.
  EXPECT_NEAR(summary.rows[0].unseen_deviation, std::sqrt(0.02), 1e-12);
  EXPECT_EQ(summary.sequences, 500);
}

TEST(AccuracySummaryTest, RendersSeenAndUnseenApart) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("randomized", 0)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0, 0.9, 0.2, 0.1});
  AddFinal(response, trials[1], {0.9, 0.8, 0.8, 0.7});
  EXPECT_EQ(RenderAccuracyTable(Summarize(trials, response), 80, Palette(false)),
            "           │ seen in training  │ not seen\n"
            "encoding   │     1     2  mean │    3     4  mean\n"
            "───────────┼───────────────────┼─────────────────\n"
            "sin_cos    │ 100.0  90.0  95.0 │ 20.0  10.0  15.0\n"
            "randomized │  90.0  80.0  85.0 │ 80.0  70.0  75.0\n");
}

TEST(AccuracySummaryTest, CountsTrialsWithoutAFinalEvaluation) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("randomized", 0)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[1], {1.0});
  auto& interval = *response.add_evaluations();
  interval.set_trial(trials[0].name());
  interval.mutable_accuracies()->add_lengths(1);
  interval.mutable_accuracies()->add_accuracies(0.5);
  const AccuracySummary summary = Summarize(trials, response);
  EXPECT_EQ(summary.missing_trials, 1);
  ASSERT_EQ(summary.rows.size(), 1u);
  EXPECT_EQ(summary.rows[0].encoding, "randomized");
  EXPECT_TRUE(std::isnan(summary.rows[0].unseen));
}

TEST(AccuracySummaryTest, RecordsHaveEveryTrialAndLength) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("randomized", 3)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0, 0.5, 0.25});
  AddFinal(response, trials[1], {1.0});
  std::ostringstream out;
  WriteCsv(AccuracyRecords(trials, response), out);
  EXPECT_EQ(
      out.str(),
      "trial,task,network,encoding,learning_rate,weight_seed,data_seed,step,final,length,seen,"
      "accuracy,loss,sequences\n"
      "experiments/e-1/trials/sin_cos-seed0,bucket_sort,encoder,sin_cos,0.001,0,0,100,true,1,"
      "true,1,0.5,500\n"
      "experiments/e-1/trials/sin_cos-seed0,bucket_sort,encoder,sin_cos,0.001,0,0,100,true,2,"
      "true,0.5,0.5,500\n"
      "experiments/e-1/trials/sin_cos-seed0,bucket_sort,encoder,sin_cos,0.001,0,0,100,true,3,"
      "false,0.25,0.5,500\n"
      "experiments/e-1/trials/randomized-seed3,bucket_sort,encoder,randomized,0.001,3,3,100,"
      "true,1,true,1,0.5,500\n");
}

TEST(AccuracySummaryTest, TheChartShowsTheBestWhenThereAreTooMany) {
  const std::vector<v1::Trial> trials = {MakeTrial("a", 0), MakeTrial("b", 0), MakeTrial("c", 0)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0, 1.0, 0.3});
  AddFinal(response, trials[1], {1.0, 1.0, 0.1});
  AddFinal(response, trials[2], {1.0, 1.0, 0.9});
  const Chart chart = MakeAccuracyChart(Summarize(trials, response), 2);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].name, "c");
  EXPECT_EQ(chart.series[1].name, "a");
  EXPECT_EQ(chart.split, 2);
}

}  // namespace
}  // namespace lengthwise::client
