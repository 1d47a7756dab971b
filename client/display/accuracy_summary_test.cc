#include "client/display/accuracy_summary.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

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

// A summary without cells, as the server heads it if lengths up to 2 count as seen.
v1::SummarizeExperimentResponse Headed() {
  v1::SummarizeExperimentResponse response;
  response.mutable_heading()->set_axis("length");
  response.mutable_heading()->set_seen_up_to(2);
  response.mutable_heading()->set_seen("seen in training");
  response.mutable_heading()->set_unseen("not seen");
  return response;
}

void SetStatistic(double mean, int trials, v1::SummarizeExperimentResponse::Statistic& statistic) {
  statistic.set_mean(mean);
  statistic.set_trials(trials);
}

// Adds the server's summary of `trials` trials with these mean accuracies at lengths 1, 2, 3, ...,
// of which two are seen.
v1::SummarizeExperimentResponse::Cell& AddCell(v1::SummarizeExperimentResponse& response,
                                               const std::string& encoding, int trials,
                                               const std::vector<double>& accuracies) {
  auto& cell = *response.add_cells();
  cell.set_task("bucket_sort");
  cell.set_network("encoder");
  cell.set_encoding(encoding);
  cell.set_learning_rate(0.001);
  cell.mutable_trials()->set_succeeded(trials);
  double seen = 0;
  double unseen = 0;
  for (size_t i = 0; i < accuracies.size(); ++i) {
    cell.add_lengths(static_cast<int32_t>(i) + 1);
    cell.add_mean_accuracies(accuracies[i]);
    (i < 2 ? seen : unseen) += accuracies[i];
  }
  if (!accuracies.empty()) {
    SetStatistic(seen / std::min<size_t>(2, accuracies.size()), trials,
                 *cell.mutable_seen_accuracy());
  }
  if (accuracies.size() > 2) {
    SetStatistic(unseen / (accuracies.size() - 2), trials, *cell.mutable_unseen_accuracy());
  }
  return cell;
}

TEST(AccuracySummaryTest, ShowsTheServersNumbers) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "sin_cos", 2, {1.0, 0.7, 0.3, 0.1})
      .mutable_unseen_accuracy()
      ->set_deviation(0.14);
  EXPECT_THAT(MakeAccuracyTable(Summarize(response), 80).Render(80, Palette(false)),
              HasSubstr(" 2 │ 100.0  70.0  85.0 │ 30.0  10.0  20.0  14.0"));
}

TEST(AccuracySummaryTest, RendersSeenAndUnseenApart) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "sin_cos", 1, {1.0, 0.9, 0.2, 0.1});
  AddCell(response, "randomized", 1, {0.9, 0.8, 0.8, 0.7});
  EXPECT_EQ(MakeAccuracyTable(Summarize(response), 80).Render(80, Palette(false)),
            "           │ seen in training  │ not seen\n"
            "encoding   │     1     2  mean │    3     4  mean\n"
            "───────────┼───────────────────┼─────────────────\n"
            "sin_cos    │ 100.0  90.0  95.0 │ 20.0  10.0  15.0\n"
            "randomized │  90.0  80.0  85.0 │ 80.0  70.0  75.0\n");
}

TEST(AccuracySummaryTest, HeadingsAreTheServers) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "sin_cos", 1, {1.0, 0.9, 0.2, 0.1});
  response.mutable_heading()->set_seen("up to 2");
  response.mutable_heading()->set_unseen("above 2");
  const AccuracySummary summary = Summarize(response);
  EXPECT_EQ(MakeAccuracyTable(summary, 80).Render(80, Palette(false)),
            "         │ up to 2           │ above 2\n"
            "encoding │     1     2  mean │    3     4  mean\n"
            "─────────┼───────────────────┼─────────────────\n"
            "sin_cos  │ 100.0  90.0  95.0 │ 20.0  10.0  15.0\n");
  EXPECT_THAT(MakeAccuracyChart(summary, 8).split_labels, Pair("up to 2", "above 2"));
}

TEST(AccuracySummaryTest, SingleGroupIsShownOnceAsTheMean) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "sin_cos", 1, {1.0, 0.9, 0.2, 0.1});
  AddCell(response, "randomized", 1, {0.9, 0.8, 0.8, 0.7});
  EXPECT_EQ(MakeAccuracyTable(Summarize(response), 30).Render(30, Palette(false)),
            "           │ seen │ not seen\n"
            "encoding   │  1–2 │      3–4\n"
            "───────────┼──────┼─────────\n"
            "sin_cos    │ 95.0 │     15.0\n"
            "randomized │ 85.0 │     75.0\n");
}

TEST(AccuracySummaryTest, CountsTrialsThatDidNotSucceed) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "sin_cos", 0, {}).mutable_trials()->set_running(1);
  AddCell(response, "randomized", 1, {1.0}).mutable_trials()->set_failed(2);
  const AccuracySummary summary = Summarize(response);
  EXPECT_EQ(summary.missing_trials, 3);
  ASSERT_EQ(summary.rows.size(), 1u);
  EXPECT_EQ(summary.rows[0].encoding(), "randomized");
}

TEST(AccuracySummaryTest, RecordsHaveEveryTrialAndLength) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("randomized", 3)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0, 0.5, 0.25});
  for (const int32_t count : {500, 120, 5}) {
    response.mutable_evaluations(0)->mutable_accuracies()->add_sequence_counts(count);
  }
  AddFinal(response, trials[1], {1.0});
  std::ostringstream out;
  WriteAccuracies(trials, response, {}, RecordFormat::kCsv, out);
  EXPECT_EQ(
      out.str(),
      "trial,task,network,encoding,learning_rate,weight_seed,data_seed,step,final,length,seen,"
      "accuracy,loss,sequences\n"
      "experiments/e-1/trials/sin_cos-seed0,bucket_sort,encoder,sin_cos,0.001,0,0,100,true,1,"
      "true,1,0.5,500\n"
      "experiments/e-1/trials/sin_cos-seed0,bucket_sort,encoder,sin_cos,0.001,0,0,100,true,2,"
      "true,0.5,0.5,120\n"
      "experiments/e-1/trials/sin_cos-seed0,bucket_sort,encoder,sin_cos,0.001,0,0,100,true,3,"
      "false,0.25,0.5,5\n"
      "experiments/e-1/trials/randomized-seed3,bucket_sort,encoder,randomized,0.001,3,3,100,"
      "true,1,true,1,0.5,500\n");
}

TEST(AccuracySummaryTest, RecordsHaveTheLargestSeed) {
  const std::vector<v1::Trial> trials = {
      MakeTrial("sin_cos", std::numeric_limits<uint64_t>::max())};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0});
  std::ostringstream csv, json;
  WriteAccuracies(trials, response, {}, RecordFormat::kCsv, csv);
  WriteAccuracies(trials, response, {}, RecordFormat::kJson, json);
  EXPECT_THAT(csv.str(), HasSubstr(",18446744073709551615,18446744073709551615,"));
  EXPECT_THAT(json.str(), HasSubstr("\"weight_seed\":18446744073709551615,"));
  EXPECT_THAT(json.str(), HasSubstr("\"data_seed\":18446744073709551615,"));
}

TEST(AccuracySummaryTest, TrainingAccuraciesComeFirst) {
  v1::SummarizeExperimentResponse cells = Headed();
  auto& measured = AddCell(cells, "sin_cos", 2, {1, 1, 0.5});
  AddCell(cells, "randomized", 1, {1, 1, 1});
  EXPECT_THAT(MakeAccuracyTable(Summarize(cells), 100).Render(100, Palette(false)),
              Not(HasSubstr("training set")));
  SetStatistic(0.75, 1, *measured.mutable_training_accuracy());
  EXPECT_THAT(MakeAccuracyTable(Summarize(cells), 100).Render(100, Palette(false)),
              HasSubstr("│ training set │     1"));
  SetStatistic(0.75, 2, *measured.mutable_training_accuracy());
  measured.mutable_training_accuracy()->set_deviation(0.125);
  const std::string table = MakeAccuracyTable(Summarize(cells), 100).Render(100, Palette(false));
  EXPECT_THAT(table, HasSubstr("│ training set     ± │"));
  EXPECT_THAT(table, HasSubstr("│         75.0  12.5 │"));
  EXPECT_THAT(table, HasSubstr("│            –     – │"));
}

TEST(AccuracySummaryTest, RecordsHaveTrainingAccuracies) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("randomized", 0)};
  v1::QueryLengthAccuraciesResponse response;
  for (const v1::Trial& trial : trials) AddFinal(response, trial, {1.0});
  response.mutable_evaluations(0)->mutable_accuracies()->set_training_accuracy(0.5);
  std::ostringstream out;
  WriteAccuracies(trials, response, {}, RecordFormat::kCsv, out);
  EXPECT_THAT(out.str(), HasSubstr("sequences,training_accuracy\n"));
  EXPECT_THAT(out.str(), HasSubstr("500,0.5\n"));
  EXPECT_THAT(out.str(), HasSubstr("500,\n"));
}

TEST(AccuracySummaryTest, CommonEncodingHasNoColumn) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "none", 1, {1.0, 0.9, 0.2});
  AddCell(response, "none", 1, {0.9, 0.8, 0.8}).set_task("odds_first");
  const std::string table = MakeAccuracyTable(Summarize(response), 80).Render(80, Palette(false));
  EXPECT_THAT(table, Not(HasSubstr("encoding")));
  EXPECT_THAT(table, HasSubstr("odds_first"));
}

TEST(AccuracySummaryTest, RecordsHaveTheTasksOtherMeasures) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("randomized", 3)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0, 0.5});
  AddFinal(response, trials[1], {1.0});
  auto& metric = *response.mutable_evaluations(0)->mutable_accuracies()->add_metrics();
  metric.set_name("digits_accuracy");
  metric.add_values(1.0);
  metric.add_values(0.75);
  std::ostringstream out;
  WriteAccuracies(trials, response, {}, RecordFormat::kCsv, out);
  const std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
  ASSERT_EQ(lines.size(), 5u) << out.str();  // the last is empty
  EXPECT_TRUE(absl::EndsWith(lines[0], ",sequences,digits_accuracy")) << lines[0];
  EXPECT_TRUE(absl::EndsWith(lines[1], ",500,1")) << lines[1];
  EXPECT_TRUE(absl::EndsWith(lines[2], ",500,0.75")) << lines[2];
  EXPECT_TRUE(absl::EndsWith(lines[3], ",500,")) << lines[3];
}

TEST(AccuracySummaryTest, FinalRecordsHaveAnswerErrors) {
  const std::vector<v1::Trial> trials = {MakeTrial("sin_cos", 0), MakeTrial("randomized", 3)};
  v1::QueryLengthAccuraciesResponse response;
  AddFinal(response, trials[0], {1.0, 0.5});
  v1::QueryLengthAccuraciesResponse interval = response;
  interval.mutable_evaluations(0)->mutable_accuracies()->set_final(false);
  response.MergeFrom(interval);
  AddFinal(response, trials[1], {1.0});
  v1::Event event;
  event.set_trial(trials[0].name());
  v1::AnswerErrors& errors = *event.mutable_answer_errors();
  errors.set_length(2);
  for (const int32_t count : {3, 0, 1}) errors.add_wrong_by_place(count);
  for (const int32_t count : {6, 4}) errors.add_answers_by_wrong_digits(count);
  errors.set_first_wrong_with_carry(3);
  errors.set_first_wrong_without_carry(1);
  std::ostringstream csv, json;
  WriteAccuracies(trials, response, {event}, RecordFormat::kCsv, csv);
  EXPECT_THAT(csv.str(), HasSubstr("sequences,wrong_by_place,answers_by_wrong_digits,"
                                   "first_wrong_with_carry,first_wrong_without_carry\n"));
  const std::vector<std::string> lines = absl::StrSplit(csv.str(), '\n');
  ASSERT_EQ(lines.size(), 7u) << csv.str();  // the last is empty
  EXPECT_TRUE(absl::EndsWith(lines[2], ",3 0 1,6 4,3,1")) << lines[2];
  // The other lengths, trials and steps have none.
  for (const size_t line : {1, 3, 4, 5}) {
    EXPECT_TRUE(absl::EndsWith(lines[line], ",500,,,,")) << lines[line];
  }
  WriteAccuracies(trials, response, {event}, RecordFormat::kJson, json);
  EXPECT_THAT(json.str(),
              HasSubstr("\"wrong_by_place\":[3,0,1],\"answers_by_wrong_digits\":[6,4]"));
}

TEST(AccuracySummaryTest, ChartShowsOnlyTheBestRows) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "a", 1, {1.0, 1.0, 0.3});
  AddCell(response, "b", 1, {1.0, 1.0, 0.1});
  AddCell(response, "c", 1, {1.0, 1.0, 0.9});
  for (auto& cell : *response.mutable_cells()) *cell.mutable_selection() = cell.unseen_accuracy();
  const Chart chart = MakeAccuracyChart(Summarize(response), 2);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].name, "c");
  EXPECT_EQ(chart.series[1].name, "a");
  EXPECT_EQ(chart.split, 2);
}

TEST(AccuracySummaryTest, ChartRanksEachTaskByItself) {
  v1::SummarizeExperimentResponse response = Headed();
  const auto add = [&](const char* task, const char* encoding, double unseen) {
    v1::SummarizeExperimentResponse::Cell& cell =
        AddCell(response, encoding, 1, {1.0, 1.0, unseen});
    cell.set_task(task);
    SetStatistic(unseen, 1, *cell.mutable_selection());
  };
  // Chance is 50 % in the first task and 20 % in the second.
  add("even_pairs", "a", 0.5);
  add("even_pairs", "b", 0.52);
  add("even_pairs", "c", 0.51);
  add("bucket_sort", "a", 0.3);
  add("bucket_sort", "b", 0.4);
  const Chart chart = MakeAccuracyChart(Summarize(response), 3);
  std::vector<std::string> names;
  for (const ChartSeries& one : chart.series) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("even_pairs b", "bucket_sort b", "even_pairs c"));
}

TEST(AccuracySummaryTest, ChartRanksEqualScoresByLossThenRate) {
  v1::SummarizeExperimentResponse response = Headed();
  const auto add = [&](const char* encoding, double loss, double rate) {
    v1::SummarizeExperimentResponse::Cell& cell = AddCell(response, encoding, 1, {1.0, 1.0, 0.5});
    SetStatistic(1, 1, *cell.mutable_selection());
    cell.set_selection_loss(loss);
    cell.set_learning_rate(rate);
  };
  add("d", std::nan(""), 0.0001);
  add("a", 0.2, 0.001);
  add("b", 0.1, 0.002);
  add("c", 0.1, 0.001);
  const Chart chart = MakeAccuracyChart(Summarize(response), 2);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_THAT(chart.series[0].name, HasSubstr("c"));
  EXPECT_THAT(chart.series[1].name, HasSubstr("b"));
}

TEST(SparklineTest, DrawsAccuraciesAsBlocksOfTheirHeight) {
  EXPECT_EQ(Sparkline({0, 0.5, 1, std::nan(""), 0.1, 2}), "▁▅█ ▂█");
}

TEST(AccuracyTableTest, ShowsSparklinesIfThereIsRoom) {
  v1::SummarizeExperimentResponse response = Headed();
  AddCell(response, "sin_cos", 1, {1, 1, 0.5, 0, 0});
  const AccuracySummary summary = Summarize(response);
  const std::string wide = MakeAccuracyTable(summary, 110, true).Render(110, Palette(false));
  EXPECT_NE(wide.find("│ by length\n"), std::string::npos) << wide;
  EXPECT_NE(wide.find("│ ██┊▅▁▁\n"), std::string::npos) << wide;
  const std::string narrow = MakeAccuracyTable(summary, 40, true).Render(40, Palette(false));
  EXPECT_EQ(narrow.find("by length"), std::string::npos) << narrow;
}

}  // namespace
}  // namespace lengthwise::client
