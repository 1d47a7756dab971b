#include "tasks/numeric/scores.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::tasks::numeric {
namespace {

const std::vector<uint8_t> kMask = {1, 1, 0};

TEST(ScoresTest, ErrorsAreMeansOverUnmaskedElements) {
  const std::vector<double> predictions = {1, 5, 100}, targets = {3, 4, 0};
  EXPECT_DOUBLE_EQ(MeanSquaredError(predictions, targets, kMask), (4.0 + 1.0) / 2);
  EXPECT_DOUBLE_EQ(MeanAbsolutePercentageError(predictions, targets, kMask),
                   (2.0 / 3 + 1.0 / 4) / 2);
}

TEST(ScoresTest, ZeroTargetHasAFinitePercentageError) {
  EXPECT_DOUBLE_EQ(MeanAbsolutePercentageError({0.5}, {0}, {1}), 0.5 / 1.17e-6);
}

TEST(ScoresTest, RoundsToTheNearestMultiple) {
  EXPECT_TRUE(AllRoundToTarget({2.6, -1.4, 9}, {3, -1, 0}, kMask, 1));
  EXPECT_FALSE(AllRoundToTarget({2.6, -1.6, 9}, {3, -1, 0}, kMask, 1));
  EXPECT_TRUE(AllRoundToTarget({2.6, -1.7, 9}, {2.5, -1.5, 0}, kMask, 0.5));
  EXPECT_FALSE(AllRoundToTarget({2.8, -1.7, 9}, {2.5, -1.5, 0}, kMask, 0.5));
  EXPECT_TRUE(AllRoundToTarget({-0.2}, {0}, {1}, 1));
  EXPECT_FALSE(AllRoundToTarget({std::nan("")}, {0}, {1}, 1));
}

TEST(ScoresTest, ClosenessHasThreeReadings) {
  // The target 10: 0.05 absolute, 0.5 relative, 0.55 together.
  EXPECT_TRUE(IsClose(10.54, 10, Closeness::kSum));
  EXPECT_FALSE(IsClose(10.56, 10, Closeness::kSum));
  EXPECT_TRUE(IsClose(10.04, 10, Closeness::kBoth));
  EXPECT_FALSE(IsClose(10.06, 10, Closeness::kBoth));
  EXPECT_TRUE(IsClose(10.49, 10, Closeness::kEither));
  EXPECT_FALSE(IsClose(10.51, 10, Closeness::kEither));
  // Near 0 the relative tolerance is the smaller one.
  EXPECT_FALSE(IsClose(0.13, 0.1, Closeness::kBoth));
  EXPECT_TRUE(IsClose(0.13, 0.1, Closeness::kEither));
  EXPECT_FALSE(IsClose(std::nan(""), 0.1, Closeness::kEither));
}

TEST(ScoresTest, OneWrongElementMakesTheListWrong) {
  EXPECT_TRUE(AllClose({1, 2, 9}, {1, 2, 0}, kMask, Closeness::kSum));
  EXPECT_FALSE(AllClose({1, 3, 9}, {1, 2, 0}, kMask, Closeness::kSum));
}

}  // namespace
}  // namespace lengthwise::tasks::numeric
