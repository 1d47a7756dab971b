#include "tasks/numeric/value_range.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/numeric/testing/drawn_vector.h"

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

// Values stated in appendix D and section 6.
TEST(InDomainProbabilityTest, MatchesThePaper) {
  EXPECT_LT(*InDomainProbabilityBound(8, 3), 0.05);
  EXPECT_NEAR(*InDomainProbabilityBound(8, 10), 0.0034, 0.00005);
}

TEST(InDomainProbabilityTest, BoundsTheFractionInTrainingRange) {
  const EntryTask task(CumulativeSum());
  constexpr int kSamples = 20000;
  for (const int64_t n : {2, 4, 8}) {
    for (const double c : {1.5, 2.0, 3.0}) {
      int inside = 0;
      for (uint32_t i = 0; i < kSamples; ++i) {
        const auto x = task.Draw({.n = n, .scale = c}, i).inputs;
        inside += std::all_of(x.begin(), x.end(), [](double v) { return std::abs(v) <= 2; });
      }
      const double share = static_cast<double>(inside) / kSamples;
      const double bound = *InDomainProbabilityBound(n, c);
      EXPECT_LE(share, bound + 3 * std::sqrt(bound / kSamples)) << n << " " << c;
      EXPECT_GE(share, bound / 2) << n << " " << c << ": it is not far off";
    }
  }
}

// The two integrals of appendix D for n = 2, evaluated exactly.
TEST(InDomainProbabilityTest, PairBoundHolds) {
  const double exact = (1 - std::log(2.0)) / 2 + std::log(4.0 / 3) / 4;
  EXPECT_GT(*InDomainProbabilityBound(2, 3), exact);
}

TEST(InDomainProbabilityTest, IsAProbabilityNearScaleOne) {
  EXPECT_EQ(*InDomainProbabilityBound(2, 1.001), 1);
}

TEST(InDomainProbabilityTest, RefusesArgumentsOutOfRange) {
  EXPECT_FALSE(InDomainProbabilityBound(1, 3).has_value());
  EXPECT_FALSE(InDomainProbabilityBound(8, 1).has_value());
  EXPECT_FALSE(InDomainProbabilityBound(8, std::nan("")).has_value());
  EXPECT_FALSE(InDomainProbabilityBound(8, HUGE_VAL).has_value());
}

}  // namespace
}  // namespace lengthwise::tasks::numeric
