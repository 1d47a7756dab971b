#include "tasks/numeric/in_domain_probability.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "tasks/all_tasks.h"
#include "tasks/numeric/drawn_vector.h"

namespace lengthwise::tasks::numeric {
namespace {

// Values stated in appendix D and section 6.
TEST(InDomainProbabilityTest, MatchesThePaper) {
  EXPECT_LT(*InDomainProbabilityBound(8, 3), 0.05);
  EXPECT_NEAR(*InDomainProbabilityBound(8, 10), 0.0034, 0.00005);
  EXPECT_LE(*InDomainProbabilityBound(2, 2, PairEquation::kPrinted), 0.4375);
  EXPECT_GT(*InDomainProbabilityBound(2, 2, PairEquation::kPrinted), 0.43);
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
TEST(InDomainProbabilityTest, CorrectedPairBoundHoldsThePrintedDoesNot) {
  const double exact = (1 - std::log(2.0)) / 2 + std::log(4.0 / 3) / 4;
  EXPECT_LT(*InDomainProbabilityBound(2, 3, PairEquation::kPrinted), exact);
  EXPECT_GT(*InDomainProbabilityBound(2, 3), exact);
}

TEST(InDomainProbabilityTest, IsAProbabilityNearScaleOne) {
  EXPECT_EQ(*InDomainProbabilityBound(2, 1.001), 1);
}

TEST(InDomainProbabilityTest, RefusesArgumentsOutOfRange) {
  EXPECT_FALSE(InDomainProbabilityBound(1, 3).ok());
  EXPECT_FALSE(InDomainProbabilityBound(8, 1).ok());
  EXPECT_FALSE(InDomainProbabilityBound(8, std::nan("")).ok());
  EXPECT_FALSE(InDomainProbabilityBound(8, HUGE_VAL).ok());
}

}  // namespace
}  // namespace lengthwise::tasks::numeric
