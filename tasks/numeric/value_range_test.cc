#include "tasks/numeric/value_range.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tasks/chomsky/chi_squared.h"

namespace lengthwise::tasks::numeric {
namespace {

constexpr ValueRange kTraining = {-2, 2};
constexpr uint32_t kDraws = 20000;

ValueRange Draw(double scale, uint32_t i) {
  random::Stream stream(1, random::Purpose::kPreview, 0, i);
  return DrawRange(kTraining, scale, stream);
}

TEST(ValueRangeTest, OrdersItsTwoBounds) {
  const ValueRange range = RangeBetween({-6, 6}, 0.75, 0.25);
  EXPECT_DOUBLE_EQ(range.low, -3);
  EXPECT_DOUBLE_EQ(range.high, 3);
  EXPECT_DOUBLE_EQ(range.At(0), -3);
  EXPECT_DOUBLE_EQ(range.At(0.5), 0);
}

// The smaller of two uniform numbers is below t with probability 1 - (1 - t)^2.
TEST(DrawRangeTest, ScaleOneOrdersTwoUniformNumbers) {
  std::vector<int64_t> low(10), high(10);
  std::vector<double> probabilities, mirrored;
  for (size_t bin = 0; bin < 10; ++bin) {
    const auto t = static_cast<double>(bin) / 10;
    probabilities.push_back((1 - t) * (1 - t) - (0.9 - t) * (0.9 - t));
    mirrored.insert(mirrored.begin(), probabilities.back());
  }
  for (uint32_t i = 0; i < kDraws; ++i) {
    const ValueRange range = Draw(1, i);
    ++low.at(static_cast<size_t>((range.low + 2) / 0.4));
    ++high.at(static_cast<size_t>((range.high + 2) / 0.4));
  }
  EXPECT_TRUE(chomsky::Fits(low, probabilities));
  EXPECT_TRUE(chomsky::Fits(high, mirrored));
}

// Equation (7) of the paper: of the remaining pairs, a fraction 2 (c - 1) / (c^2 - 1) has one bound
// within the training range, and the others have none.
TEST(DrawRangeTest, AboveScaleOneRedrawsTrainingRanges) {
  for (const double c : {1.5, 3.0, 10.0}) {
    std::vector<int64_t> counts(2);
    for (uint32_t i = 0; i < kDraws; ++i) {
      const ValueRange range = Draw(c, i);
      ASSERT_LE(-2 * c, range.low);
      ASSERT_LE(range.low, range.high);
      ASSERT_LE(range.high, 2 * c);
      const bool low_inside = range.low >= -2 && range.low <= 2;
      const bool high_inside = range.high >= -2 && range.high <= 2;
      ASSERT_FALSE(low_inside && high_inside);
      ++counts.at(low_inside || high_inside ? 0 : 1);
    }
    EXPECT_TRUE(chomsky::Fits(counts, {2 * (c - 1), (c - 1) * (c - 1)})) << c;
  }
}

TEST(DrawRangeTest, StretchesARangeThatStartsAtZero) {
  for (uint32_t i = 0; i < 1000; ++i) {
    random::Stream stream(1, random::Purpose::kPreview, 0, i);
    const ValueRange range = DrawRange({0, 5}, 4, stream);
    EXPECT_GE(range.low, 0);
    EXPECT_GT(range.high, 5);
    EXPECT_LE(range.high, 20);
  }
}

}  // namespace
}  // namespace lengthwise::tasks::numeric
