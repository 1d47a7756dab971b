#include "client/display/accuracy_summary.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "catalogue/entry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"

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

v1::ExperimentSpecification Specification() {
  v1::ExperimentSpecification specification;
  specification.mutable_evaluation()->set_seen_up_to(2);
  specification.mutable_evaluation()->set_sequences(500);
  return specification;
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

TEST(AccuracySummaryTest, UsesTheServersSummaries) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 2, {1.0, 0.7, 0.3, 0.1})
      .mutable_unseen_accuracy()
      ->set_deviation(0.14);
  const AccuracySummary summary = Summarize(Specification(), response);
  ASSERT_EQ(summary.rows.size(), 1u);
  EXPECT_EQ(summary.rows[0].trials, 2);
  EXPECT_DOUBLE_EQ(summary.rows[0].scores.at(2), 0.7);
  EXPECT_DOUBLE_EQ(summary.rows[0].seen, 0.85);
  EXPECT_DOUBLE_EQ(summary.rows[0].unseen, 0.2);
  EXPECT_DOUBLE_EQ(summary.rows[0].unseen_deviation, 0.14);
  EXPECT_EQ(summary.sequences, 500);
  EXPECT_EQ(summary.seen_up_to, 2);
}

TEST(AccuracySummaryTest, CaptionTellsTrainedFromSeenLengths) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 1, {1.0, 0.7, 0.3});
  v1::ExperimentSpecification specification = Specification();
  v1::Component& task = *specification.add_tasks();
  task.set_name("bucket_sort");
  v1::LengthRange& trained = *specification.mutable_training()->mutable_lengths();
  const auto caption = [&](int32_t from, int32_t to, int32_t seen_up_to) {
    trained.set_min(from);
    trained.set_max(to);
    specification.mutable_evaluation()->set_seen_up_to(seen_up_to);
    return Caption(Summarize(specification, response));
  };
  EXPECT_THAT(caption(1, 2, 2), HasSubstr("; trained on lengths up to 2)"));
  EXPECT_THAT(caption(2, 2, 2), HasSubstr("; trained on length 2; up to 2 count as seen)"));
  EXPECT_THAT(caption(10, 20, 20),
              HasSubstr("; trained on lengths 10 to 20; up to 20 count as seen)"));
  EXPECT_THAT(caption(8, 8, 8), HasSubstr("; trained on length 8; up to 8 count as seen)"));
  EXPECT_THAT(caption(1, 500, 40),
              HasSubstr("; trained on lengths 1 to 500; up to 40 count as seen)"));
  // Nothing is evaluated below the lengths of training.
  response.mutable_cells(0)->mutable_lengths()->Set(0, 10);
  response.mutable_cells(0)->mutable_lengths()->Set(1, 20);
  response.mutable_cells(0)->mutable_lengths()->Set(2, 30);
  EXPECT_THAT(caption(10, 20, 20), HasSubstr("; trained on lengths 10 to 20)"));
  // The file has no training examples above 3.
  task.set_name("examples");
  (*task.mutable_parameters())["contents"].set_string_value(
      R"({"form":"symbols","input_symbols":4,"target_symbols":2,"same_length":true,)"
      R"("train_bytes":9,"test_bytes":9,"training":{"examples":5,"longest":6,"lengths":"1-3x5"},)"
      R"("test":{"examples":15,"longest":6,"lengths":"1-3x15"}})");
  EXPECT_THAT(caption(1, 20, 3), HasSubstr("; trained on lengths up to 3)"));
  // Evaluated lengths are 10, 20 and 30, and training had none of 10.
  (*task.mutable_parameters())["contents"].set_string_value(absl::StrReplaceAll(
      task.parameters().at("contents").string_value(), {{"1-3x5", "1-3x5,20x5"}}));
  EXPECT_THAT(caption(1, 20, 20),
              HasSubstr("; trained on some of the lengths 1 to 20; up to 20 count as seen)"));
  // Another task has examples of all lengths.
  specification.add_tasks()->set_name("bucket_sort");
  EXPECT_THAT(caption(1, 20, 20),
              HasSubstr("; trained on different lengths by task; up to 20 count as seen)"));
  // The examples have those that are evaluated.
  (*task.mutable_parameters())["contents"].set_string_value(absl::StrReplaceAll(
      task.parameters().at("contents").string_value(), {{"1-3x5,20x5", "1-3x5,10x5,20x5"}}));
  EXPECT_THAT(caption(1, 20, 20), HasSubstr("; trained on lengths up to 20)"));
  specification.mutable_tasks()->RemoveLast();
  EXPECT_THAT(caption(1, 20, 0),
              HasSubstr("; trained on some of the lengths 1 to 20; up to 0 count as seen)"));
  // No server accepts such a length, and a set of them would have gigabytes.
  EXPECT_THAT(caption(1, std::numeric_limits<int32_t>::max(), 2),
              HasSubstr("; trained on lengths up to 2)"));
  // Scales are not the lengths of training.
  task.set_name("cumulative_sum");
  EXPECT_THAT(caption(4, 4, 1), HasSubstr("; trained on scale 1)"));
}

TEST(AccuracySummaryTest, CountsTheExamplesOfATestFile) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 1, {1.0, 0.7, 0.3});
  v1::ExperimentSpecification specification = Specification();
  v1::Component& task = *specification.add_tasks();
  task.set_name("examples");
  // Of length 9, nothing is evaluated.
  const auto caption = [&](const std::string& lengths) {
    (*task.mutable_parameters())["contents"].set_string_value(absl::StrCat(
        R"({"form":"symbols","input_symbols":4,"target_symbols":2,"same_length":true,)",
        R"("train_bytes":9,"test_bytes":9,"training":{"examples":5,"longest":6,"lengths":"1-3x5"},)",
        R"("test":{"examples":15,"longest":6,"lengths":")", lengths, R"("}})"));
    return Caption(Summarize(specification, response));
  };
  EXPECT_THAT(caption("1-3x5,9x700"), HasSubstr("(5 sequences per length;"));
  EXPECT_THAT(caption("1-2x5,3x12"), HasSubstr("(up to 12 sequences per length;"));
  EXPECT_THAT(caption("1-2x5,3x700"), HasSubstr("(up to 500 sequences per length;"));
  EXPECT_THAT(caption("1-3x700"), HasSubstr("(500 sequences per length;"));
}

TEST(AccuracySummaryTest, RendersSeenAndUnseenApart) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 1, {1.0, 0.9, 0.2, 0.1});
  AddCell(response, "randomized", 1, {0.9, 0.8, 0.8, 0.7});
  EXPECT_EQ(MakeAccuracyTable(Summarize(Specification(), response), 80).Render(80, Palette(false)),
            "           │ seen in training  │ not seen\n"
            "encoding   │     1     2  mean │    3     4  mean\n"
            "───────────┼───────────────────┼─────────────────\n"
            "sin_cos    │ 100.0  90.0  95.0 │ 20.0  10.0  15.0\n"
            "randomized │  90.0  80.0  85.0 │ 80.0  70.0  75.0\n");
}

TEST(AccuracySummaryTest, HeadingsDoNotCallATrainedLengthUnseen) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 1, {1.0, 0.9, 0.2, 0.1});
  v1::ExperimentSpecification specification = Specification();
  specification.add_tasks()->set_name("bucket_sort");
  v1::LengthRange& trained = *specification.mutable_training()->mutable_lengths();
  trained.set_min(1);
  trained.set_max(100);
  const AccuracySummary summary = Summarize(specification, response);
  EXPECT_EQ(MakeAccuracyTable(summary, 80).Render(80, Palette(false)),
            "         │ up to 2           │ above 2\n"
            "encoding │     1     2  mean │    3     4  mean\n"
            "─────────┼───────────────────┼─────────────────\n"
            "sin_cos  │ 100.0  90.0  95.0 │ 20.0  10.0  15.0\n");
  EXPECT_THAT(MakeAccuracyChart(summary, 8).split_labels, Pair("up to 2", "above 2"));
  // Of the seen lengths, training had 2 alone; it had none of the others.
  trained.set_min(2);
  trained.set_max(2);
  EXPECT_THAT(SideHeadings(Summarize(specification, response)), Pair("up to 2", "not seen"));
}

TEST(AccuracySummaryTest, SingleGroupIsShownOnceAsTheMean) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 1, {1.0, 0.9, 0.2, 0.1});
  AddCell(response, "randomized", 1, {0.9, 0.8, 0.8, 0.7});
  EXPECT_EQ(MakeAccuracyTable(Summarize(Specification(), response), 30).Render(30, Palette(false)),
            "           │ seen │ not seen\n"
            "encoding   │  1–2 │      3–4\n"
            "───────────┼──────┼─────────\n"
            "sin_cos    │ 95.0 │     15.0\n"
            "randomized │ 85.0 │     75.0\n");
}

TEST(AccuracySummaryTest, CountsTrialsThatDidNotSucceed) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 0, {}).mutable_trials()->set_running(1);
  AddCell(response, "randomized", 1, {1.0}).mutable_trials()->set_failed(2);
  const AccuracySummary summary = Summarize(Specification(), response);
  EXPECT_EQ(summary.missing_trials, 3);
  ASSERT_EQ(summary.rows.size(), 1u);
  EXPECT_EQ(summary.rows[0].encoding, "randomized");
  EXPECT_TRUE(std::isnan(summary.rows[0].unseen));
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
  v1::SummarizeExperimentResponse cells;
  auto& measured = AddCell(cells, "sin_cos", 2, {1, 1, 0.5});
  AddCell(cells, "randomized", 1, {1, 1, 1});
  EXPECT_THAT(MakeAccuracyTable(Summarize(Specification(), cells), 100).Render(100, Palette(false)),
              Not(HasSubstr("training set")));
  SetStatistic(0.75, 1, *measured.mutable_training_accuracy());
  EXPECT_THAT(MakeAccuracyTable(Summarize(Specification(), cells), 100).Render(100, Palette(false)),
              HasSubstr("│ training set │     1"));
  SetStatistic(0.75, 2, *measured.mutable_training_accuracy());
  measured.mutable_training_accuracy()->set_deviation(0.125);
  const AccuracySummary summary = Summarize(Specification(), cells);
  EXPECT_EQ(summary.rows[0].training, 0.75);
  EXPECT_TRUE(std::isnan(summary.rows[1].training));
  const std::string table = MakeAccuracyTable(summary, 100).Render(100, Palette(false));
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
  v1::SummarizeExperimentResponse response;
  AddCell(response, "none", 1, {1.0, 0.9, 0.2});
  AddCell(response, "none", 1, {0.9, 0.8, 0.8}).set_task("odds_first");
  const std::string table =
      MakeAccuracyTable(Summarize(Specification(), response), 80).Render(80, Palette(false));
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

TEST(AccuracySummaryTest, CaptionNamesTheMeasure) {
  v1::ExperimentSpecification specification = Specification();
  specification.add_tasks()->set_name("bucket_sort");
  const v1::SummarizeExperimentResponse response;
  EXPECT_EQ(Caption(Summarize(specification, response)),
            "Token accuracy by input length, per cent (500 sequences per length; trained on "
            "lengths up to 2)");
  specification.mutable_tasks(0)->set_name("decimal_addition");
  EXPECT_EQ(Caption(Summarize(specification, response)),
            "Exact match by number of digits, per cent (500 sequences per number of digits; "
            "trained on up to 2 digits)");
  v1::SummarizeExperimentResponse seeds;
  AddCell(seeds, "sin_cos", 2, {1.0, 0.7, 0.3}).mutable_unseen_accuracy()->set_deviation(0.1);
  EXPECT_THAT(Caption(Summarize(specification, seeds)),
              HasSubstr("trained on up to 2 digits; ±: standard deviation over trials)"));
}

TEST(AccuracySummaryTest, NamesTheChanceOfEachTask) {
  v1::ExperimentSpecification specification = Specification();
  EXPECT_EQ(RandomGuess(specification), "");
  specification.add_tasks()->set_name("bucket_sort");
  EXPECT_EQ(RandomGuess(specification), "Random guess: 20 %.");
  specification.add_tasks()->set_name("even_pairs");
  specification.add_tasks()->set_name("parity_check");
  EXPECT_EQ(RandomGuess(specification),
            "Random guess: 50 % (even_pairs, parity_check), 20 % (bucket_sort).");
  // With other symbols, chance is another.
  auto& parameters = *specification.mutable_tasks(0)->mutable_parameters();
  const catalogue::ParameterEntry& parameter = tasks::FindTask("bucket_sort")->parameters.at(0);
  parameters[parameter.name].set_number_value(3);
  EXPECT_EQ(RandomGuess(specification), "Random guess: 50 % (even_pairs, parity_check).");
  parameters[parameter.name].set_number_value(
      static_cast<double>(std::get<int64_t>(parameter.default_value)));
  EXPECT_THAT(RandomGuess(specification), HasSubstr("20 % (bucket_sort)"));
  specification.clear_tasks();
  specification.add_tasks()->set_name("cumulative_sum");
  EXPECT_EQ(RandomGuess(specification), "");
}

TEST(AccuracySummaryTest, ChartShowsOnlyTheBestRows) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "a", 1, {1.0, 1.0, 0.3});
  AddCell(response, "b", 1, {1.0, 1.0, 0.1});
  AddCell(response, "c", 1, {1.0, 1.0, 0.9});
  for (auto& cell : *response.mutable_cells()) *cell.mutable_selection() = cell.unseen_accuracy();
  const Chart chart = MakeAccuracyChart(Summarize(Specification(), response), 2);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].name, "c");
  EXPECT_EQ(chart.series[1].name, "a");
  EXPECT_EQ(chart.split, 2);
}

TEST(AccuracySummaryTest, ChartRanksEachTaskByItself) {
  v1::SummarizeExperimentResponse response;
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
  const Chart chart = MakeAccuracyChart(Summarize(Specification(), response), 3);
  std::vector<std::string> names;
  for (const ChartSeries& one : chart.series) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("even_pairs b", "bucket_sort b", "even_pairs c"));
}

TEST(SparklineTest, DrawsAccuraciesAsBlocksOfTheirHeight) {
  EXPECT_EQ(Sparkline({0, 0.5, 1, std::nan(""), 0.1, 2}), "▁▅█ ▂█");
}

TEST(AccuracyTableTest, ShowsSparklinesIfThereIsRoom) {
  v1::SummarizeExperimentResponse response;
  AddCell(response, "sin_cos", 1, {1, 1, 0.5, 0, 0});
  const AccuracySummary summary = Summarize(Specification(), response);
  const std::string wide = MakeAccuracyTable(summary, 110, true).Render(110, Palette(false));
  EXPECT_NE(wide.find("│ by length\n"), std::string::npos) << wide;
  EXPECT_NE(wide.find("│ ██┊▅▁▁\n"), std::string::npos) << wide;
  const std::string narrow = MakeAccuracyTable(summary, 40, true).Render(40, Palette(false));
  EXPECT_EQ(narrow.find("by length"), std::string::npos) << narrow;
  // Documents contain numbers only.
  EXPECT_EQ(MakeAccuracyTable(summary, 110).RenderMarkdown().find("by length"), std::string::npos);
}

}  // namespace
}  // namespace lengthwise::client
