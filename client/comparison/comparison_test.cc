#include "client/comparison/comparison.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

constexpr char kProtocol[] = "randomized_positional_encodings";

// Two tasks and two encodings.
PublishedTable Table() {
  PublishedTable table;
  table.protocol = kProtocol;
  table.columns = {{.key = "none", .label = "None", .encoding = "none"},
                   {.key = "rand_rope",
                    .label = "Randomized RoPE",
                    .encoding = "rope",
                    .parameters = {{"randomized", true}}}};
  table.rows = {{.task = "even_pairs", .label = "Even Pairs", .level = "R"},
                {.task = "bucket_sort", .label = "Bucket Sort", .level = "CS"}};
  table.cells = {{{0, 0}, {50.4}}, {{0, 1}, {100.0}}, {{1, 0}, {23.7}}};
  return table;
}

// Labels differ from names, as users may choose them.
v1::ExperimentSpecification Specification() {
  v1::ExperimentSpecification specification;
  for (const char* name : {"even_pairs", "bucket_sort", "odds_first"}) {
    v1::Component& task = *specification.add_tasks();
    task.set_name(name);
    task.set_label(std::string("my_") + name);
  }
  v1::Component& network = *specification.add_networks();
  network.set_name("encoder");
  network.set_label("net");
  for (const char* label : {"none", "plain", "random"}) {
    v1::Component& encoding = *specification.add_encodings();
    encoding.set_name(label == std::string("none") ? "none" : "rope");
    encoding.set_label(label);
    (*encoding.mutable_parameters())["randomized"].set_bool_value(label == std::string("random"));
  }
  specification.mutable_training()->set_steps(1000);
  return specification;
}

class SummaryBuilder {
 public:
  // Trials of one learning rate; accuracies are 0 to 1.
  v1::SummarizeExperimentResponse::Cell& Add(const std::string& task, const std::string& encoding,
                                             int trials, double mean, double max) {
    auto& cell = *summary_.add_cells();
    cell.set_task("my_" + task);
    cell.set_network("net");
    cell.set_encoding(encoding);
    cell.mutable_trials()->set_succeeded(trials);
    cell.mutable_unseen_accuracy()->set_trials(trials);
    cell.mutable_unseen_accuracy()->set_mean(mean);
    cell.mutable_unseen_accuracy()->set_max(max);
    return cell;
  }
  Comparison Beside(PublishedTable table) const {
    auto comparison = Compare(std::move(table), Specification(), summary_);
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    return comparison.ok() ? *std::move(comparison) : Comparison();
  }
  const v1::SummarizeExperimentResponse& summary() const { return summary_; }

 private:
  v1::SummarizeExperimentResponse summary_;
};

TEST(ComparisonTest, PutsTheBestTrialOfACellBesideThePublishedNumber) {
  SummaryBuilder summary;
  summary.Add("even_pairs", "none", 1, 0.512, 0.512);
  summary.Add("even_pairs", "none", 1, 0.503, 0.503);
  summary.Add("even_pairs", "random", 1, 0.878, 0.878);
  const Comparison comparison = summary.Beside(Table());
  const ComparisonCell& none = comparison.cells[0][0];
  ASSERT_TRUE(none.measured.has_value());
  EXPECT_DOUBLE_EQ(none.measured->value, 51.2);
  EXPECT_EQ(none.measured->trials, 2);
  EXPECT_DOUBLE_EQ(none.Difference(Quantity::kUnseenAccuracy).value(), 0.8);
  EXPECT_DOUBLE_EQ(comparison.cells[0][1].Difference(Quantity::kUnseenAccuracy).value(), -12.2);
  EXPECT_FALSE(none.best_measured);
  EXPECT_TRUE(comparison.cells[0][1].best_measured);
  EXPECT_TRUE(comparison.cells[0][1].best_published);
}

TEST(ComparisonTest, AColumnWithALengthTakesTheAccuracyThere) {
  PublishedTable table = Table();
  table.columns[0].length = 100;
  SummaryBuilder summary;
  summary.Add("even_pairs", "none", 3, 0.6, 0.7);
  summary.Add("bucket_sort", "none", 2, 0.6, 0.7);
  SeedStatistic at_length;
  at_length.set_trials(3);
  at_length.set_max(0.25);
  const auto comparison =
      Compare(table, Specification(), summary.summary(), {{{0, 100}, at_length}});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_DOUBLE_EQ(comparison->cells[0][0].measured->value, 25);
  EXPECT_FALSE(comparison->cells[1][0].measured.has_value()) << "not evaluated there";
  EXPECT_EQ(comparison->without_value, 2);
}

TEST(ComparisonTest, CellsThatWereNotRunAreEmptyAndCounted) {
  SummaryBuilder summary;
  summary.Add("even_pairs", "random", 1, 1, 1);
  const Comparison comparison = summary.Beside(Table());
  EXPECT_EQ(comparison.cells_run, 1);
  EXPECT_EQ(comparison.cell_count, 4);
  EXPECT_FALSE(comparison.cells[1][0].measured.has_value());
  EXPECT_FALSE(comparison.cells[1][0].Difference(Quantity::kUnseenAccuracy).has_value());
  EXPECT_TRUE(comparison.RowWasRun(0));
  EXPECT_FALSE(comparison.RowWasRun(1));
  EXPECT_FALSE(comparison.ColumnWasRun(0));
  EXPECT_TRUE(comparison.ColumnWasRun(1));
  // One number alone is not the best of anything.
  EXPECT_FALSE(comparison.cells[0][1].best_measured);
}

TEST(ComparisonTest, ANumberWithoutAPublishedOneHasNoDifference) {
  SummaryBuilder summary;
  summary.Add("bucket_sort", "random", 1, 0.9, 0.9);
  const Comparison comparison = summary.Beside(Table());
  EXPECT_TRUE(comparison.cells[1][1].measured.has_value());
  EXPECT_FALSE(comparison.cells[1][1].Difference(Quantity::kUnseenAccuracy).has_value());
}

TEST(ComparisonTest, WhatPrintsTheSameIsBestTogether) {
  SummaryBuilder summary;
  summary.Add("even_pairs", "none", 1, 0.99981, 0.99981);
  summary.Add("even_pairs", "random", 1, 0.9999, 0.9999);
  const Comparison comparison = summary.Beside(Table());
  EXPECT_TRUE(comparison.cells[0][0].best_measured);
  EXPECT_TRUE(comparison.cells[0][1].best_measured);
}

TEST(ComparisonTest, CountsWhatItLeavesOut) {
  SummaryBuilder summary;
  auto& waiting = summary.Add("even_pairs", "none", 0, 0, 0);
  waiting.mutable_trials()->set_failed(2);
  waiting.mutable_trials()->set_queued(1);
  summary.Add("even_pairs", "plain", 1, 1, 1);
  summary.Add("odds_first", "none", 1, 1, 1);
  auto& seen_only = summary.Add("bucket_sort", "none", 0, 0, 0);
  seen_only.mutable_trials()->set_succeeded(4);
  summary.Add("even_pairs", "random", 5, 0.5, 0.6);
  const Comparison comparison = summary.Beside(Table());
  EXPECT_EQ(comparison.unfinished, 3);
  EXPECT_EQ(comparison.elsewhere, 2);
  EXPECT_EQ(comparison.without_value, 4);
  EXPECT_EQ(comparison.counted, 5);
  EXPECT_FALSE(comparison.cells[0][0].measured.has_value());
}

TEST(ComparisonTest, ARowMayBeOfTrainingAccuraciesAndHasNoBest) {
  PublishedTable table = Table();
  table.rows[1] = {.task = "even_pairs",
                   .label = "Even Pairs, training set",
                   .quantity = Quantity::kTrainingAccuracy};
  SummaryBuilder summary;
  for (const char* encoding : {"none", "random"}) {
    auto& training = *summary.Add("even_pairs", encoding, 3, 0.5, 0.6).mutable_training_accuracy();
    training.set_trials(2);
    training.set_mean(0.75);
    training.set_max(encoding == std::string("none") ? 0.875 : 1);
  }
  const Comparison comparison = summary.Beside(table);
  EXPECT_EQ(comparison.cells[0][1].measured->value, 60);
  EXPECT_EQ(comparison.cells[1][1].measured->value, 100);
  EXPECT_EQ(comparison.cells[1][1].measured->trials, 2);
  EXPECT_EQ(comparison.cells[1][0].Difference(comparison.table.QuantityOf(1)), 63.8);
  EXPECT_TRUE(comparison.cells[0][0].best_measured);
  EXPECT_FALSE(comparison.cells[1][1].best_measured);
  EXPECT_EQ(comparison.counted, 6);
}

TEST(ComparisonTest, AMeanIsTakenAtTheBestLearningRate) {
  PublishedTable table = Table();
  table.columns[1].statistic = Statistic::kMeanAtBestRate;
  SummaryBuilder summary;
  summary.Add("even_pairs", "random", 2, 0.6, 1).mutable_unseen_accuracy()->set_deviation(0.56);
  summary.Add("even_pairs", "random", 2, 0.75, 0.8).mutable_unseen_accuracy()->set_deviation(0.07);
  const auto measured = summary.Beside(table).cells[0][1].measured;
  ASSERT_TRUE(measured.has_value());
  EXPECT_NEAR(measured->value, 75, 1e-9);
  EXPECT_NEAR(measured->deviation.value(), 7, 1e-9);
  EXPECT_EQ(measured->trials, 2);
}

TEST(ComparisonTest, AMaximumIsNotHeldAgainstAMean) {
  PublishedTable table = Table();
  table.columns[1].statistic = Statistic::kMeanAtBestRate;
  const Comparison comparison = SummaryBuilder().Beside(table);
  EXPECT_FALSE(comparison.cells[0][0].best_published);
  EXPECT_FALSE(comparison.cells[0][1].best_published);
}

// 18 s for 1,000 steps are 36,000 s, 10 hours, for 2,000,000.
TEST(ComparisonTest, TimesAreScaledToThePapersStepsAndTheShortestIsBest) {
  PublishedTable table = Table();
  table.quantity = Quantity::kTrainingHours;
  for (PublishedColumn& column : table.columns) column.statistic = Statistic::kMeanOfAll;
  table.cells = {{{0, 0}, {0.86}}, {{0, 1}, {1.66}}};
  SummaryBuilder summary;
  auto& none = summary.Add("even_pairs", "none", 1, 1, 1);
  none.mutable_training_seconds()->set_trials(1);
  none.mutable_training_seconds()->set_mean(18);
  auto& rope = summary.Add("even_pairs", "random", 1, 1, 1);
  rope.mutable_training_seconds()->set_trials(1);
  rope.mutable_training_seconds()->set_mean(36);
  const Comparison comparison = summary.Beside(table);
  EXPECT_DOUBLE_EQ(comparison.cells[0][0].measured->value, 10);
  EXPECT_DOUBLE_EQ(comparison.cells[0][0].Difference(Quantity::kTrainingHours).value(), 9.14);
  EXPECT_TRUE(comparison.cells[0][0].best_measured);
  EXPECT_FALSE(comparison.cells[0][1].best_measured);
  EXPECT_TRUE(comparison.cells[0][0].best_published);
  EXPECT_EQ(comparison.published_steps, 2'000'000);

  v1::ExperimentSpecification stopping = Specification();
  stopping.mutable_training()->set_stop_after_seconds(60);
  const auto refused = Compare(table, stopping, summary.summary());
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("stop early"));
}

}  // namespace
}  // namespace lengthwise::client
