#include "client/comparison/aggregation.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

SeedStatistic Seeds(int trials, double mean, double deviation, double max) {
  SeedStatistic seeds;
  seeds.set_trials(trials);
  seeds.set_mean(mean);
  seeds.set_deviation(deviation);
  seeds.set_max(max);
  return seeds;
}

TEST(AggregationTest, NothingIsNoNumber) {
  for (const Statistic statistic :
       {Statistic::kMaximum, Statistic::kMeanAtBestRate, Statistic::kMeanOfAll}) {
    EXPECT_FALSE(Aggregate({}, statistic).has_value());
    EXPECT_FALSE(Aggregate({SeedStatistic()}, statistic).has_value());
  }
}

TEST(AggregationTest, TheMaximumIsTakenOverSeedsAndLearningRates) {
  const auto best =
      Aggregate({Seeds(2, 60, 14, 70), Seeds(2, 59.75, 56, 99.5)}, Statistic::kMaximum);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->value, 99.5);
  EXPECT_EQ(best->trials, 4);
  EXPECT_FALSE(best->deviation.has_value());
}

TEST(AggregationTest, TheMeanIsThatOfTheRateWithTheBestMeanAndNotOfTheBestTrial) {
  const auto mean =
      Aggregate({Seeds(2, 60, 55, 99), Seeds(3, 80, 10, 90)}, Statistic::kMeanAtBestRate);
  ASSERT_TRUE(mean.has_value());
  EXPECT_DOUBLE_EQ(mean->value, 80);
  EXPECT_EQ(mean->trials, 3);
  EXPECT_DOUBLE_EQ(mean->deviation.value(), 10);
}

TEST(AggregationTest, OneSeedHasNoDeviation) {
  const auto mean = Aggregate({Seeds(1, 42, 0, 42)}, Statistic::kMeanAtBestRate);
  ASSERT_TRUE(mean.has_value());
  EXPECT_EQ(mean->value, 42);
  EXPECT_FALSE(mean->deviation.has_value());
}

// 1, 3 and 5, 7, 9 by hand: mean 5, squares 16 + 4 + 0 + 4 + 16 = 40 over 4.
TEST(AggregationTest, TheMeanOfAllIsThatOfTheTrialsTogether) {
  const auto mean = Aggregate({Seeds(2, 2, std::sqrt(2.0), 3), SeedStatistic(), Seeds(3, 7, 2, 9)},
                              Statistic::kMeanOfAll);
  ASSERT_TRUE(mean.has_value());
  EXPECT_DOUBLE_EQ(mean->value, 5);
  EXPECT_EQ(mean->trials, 5);
  EXPECT_NEAR(mean->deviation.value(), std::sqrt(10.0), 1e-12);
}

}  // namespace
}  // namespace lengthwise::client
