#include "proto/length_accuracies.h"

#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise {
namespace {

v1::LengthAccuracies Accuracies(const std::vector<std::pair<int32_t, double>>& points) {
  v1::LengthAccuracies accuracies;
  for (const auto& [length, accuracy] : points) {
    accuracies.add_lengths(length);
    accuracies.add_accuracies(accuracy);
    accuracies.add_losses(0);
  }
  return accuracies;
}

TEST(MeanAccuraciesTest, LengthsUpToTheLimitAreSeen) {
  v1::LengthAccuracies accuracies = Accuracies({{40, 0.5}, {10, 1}, {41, 0.25}, {500, 0.75}});
  SetMeans(40, accuracies);
  EXPECT_EQ(accuracies.seen_accuracy(), 0.75);
  EXPECT_EQ(accuracies.unseen_accuracy(), 0.5);
  SetMeans(41, accuracies);
  EXPECT_EQ(accuracies.unseen_accuracy(), 0.75);
}

TEST(MeanAccuraciesTest, LossesHaveMeansOfTheSameLengths) {
  v1::LengthAccuracies accuracies = Accuracies({{40, 0.5}, {10, 1}, {41, 0.25}});
  for (int i = 0; i < 3; ++i) accuracies.set_losses(i, i + 1);
  accuracies.set_unseen_loss(7);
  SetMeans(40, accuracies);
  EXPECT_EQ(accuracies.seen_loss(), 1.5);
  EXPECT_EQ(accuracies.unseen_loss(), 3);
  SetMeans(41, accuracies);
  EXPECT_FALSE(accuracies.has_unseen_loss());
}

TEST(MeanAccuraciesTest, NoLengthsHaveNoMean) {
  v1::LengthAccuracies accuracies = Accuracies({{40, 0}});
  accuracies.set_unseen_accuracy(1);
  SetMeans(40, accuracies);
  EXPECT_TRUE(accuracies.has_seen_accuracy());
  EXPECT_EQ(accuracies.seen_accuracy(), 0);
  EXPECT_FALSE(accuracies.has_unseen_accuracy());
  SetMeans(39, accuracies);
  EXPECT_FALSE(accuracies.has_seen_accuracy());
  EXPECT_TRUE(accuracies.has_unseen_accuracy());
}

TEST(MeanAccuraciesTest, ValuesAreClampedToTheRange) {
  v1::LengthAccuracies accuracies =
      Accuracies({{1, -3}, {2, 7}, {3, std::numeric_limits<double>::quiet_NaN()}, {4, 0.25}});
  SetMeans(2, accuracies);
  EXPECT_EQ(accuracies.seen_accuracy(), 0.5);
  EXPECT_EQ(accuracies.unseen_accuracy(), 0.125);
}

TEST(LengthAccuraciesProblemTest, ColumnsHaveEqualLengths) {
  v1::LengthAccuracies accuracies = Accuracies({{1, 0.5}, {2, 0.25}});
  EXPECT_EQ(LengthAccuraciesProblem(accuracies), "");
  v1::LengthAccuracies::Metric& metric = *accuracies.add_metrics();
  EXPECT_EQ(LengthAccuraciesProblem(accuracies),
            "length_accuracies.metrics has a metric without a name");
  metric.set_name("digits_accuracy");
  metric.add_values(1);
  EXPECT_EQ(LengthAccuraciesProblem(accuracies),
            "the columns of length_accuracies differ in length");
  metric.add_values(1);
  EXPECT_EQ(LengthAccuraciesProblem(accuracies), "");
  accuracies.add_sequence_counts(500);
  EXPECT_EQ(LengthAccuraciesProblem(accuracies),
            "the columns of length_accuracies differ in length");
  accuracies.add_sequence_counts(5);
  EXPECT_EQ(LengthAccuraciesProblem(accuracies), "");
  accuracies.add_accuracies(0);
  EXPECT_EQ(LengthAccuraciesProblem(accuracies),
            "the columns of length_accuracies differ in length");
}

TEST(SequencesAtTest, OldHistoriesHaveOneNumber) {
  v1::LengthAccuracies accuracies = Accuracies({{1, 0.5}, {2, 0.25}});
  accuracies.set_sequences(500);
  EXPECT_EQ(SequencesAt(accuracies, 1), 500);
  accuracies.add_sequence_counts(500);
  accuracies.add_sequence_counts(5);
  EXPECT_EQ(SequencesAt(accuracies, 0), 500);
  EXPECT_EQ(SequencesAt(accuracies, 1), 5);
}

}  // namespace
}  // namespace lengthwise
