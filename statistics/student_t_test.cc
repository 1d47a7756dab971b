#include "statistics/student_t.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lengthwise::statistics {
namespace {

// 2 * scipy.stats.t.sf(abs(t), df), SciPy 1.17.1.
TEST(StudentTTest, PValuesAreScipys) {
  struct Row {
    double t, degrees_of_freedom, p;
  };
  for (const Row& row : {Row{0.962, 14, 0.35237186568802764}, Row{2.5, 1, 0.24223788318168682},
                         Row{-3.2, 9.5, 0.0101165425890348}, Row{12.7, 29, 2.2576454751201607e-13},
                         Row{1e-3, 5, 0.9992407867721976}, Row{40, 3, 3.4380680789158506e-05}}) {
    EXPECT_NEAR(TwoSidedPValue(row.t, row.degrees_of_freedom) / row.p, 1, 1e-10) << row.t;
  }
}

// With one degree of freedom it is Cauchy's distribution: 1 - 2 atan(t) / pi.
TEST(StudentTTest, OneDegreeOfFreedomIsCauchys) {
  for (const double t : {0.1, 0.5, 1.0, 3.0, 100.0}) {
    EXPECT_NEAR(TwoSidedPValue(t, 1), 1 - 2 * std::atan(t) / std::acos(-1.0), 1e-12);
  }
}

TEST(StudentTTest, HasItsLimits) {
  EXPECT_EQ(TwoSidedPValue(0, 7), 1);
  EXPECT_EQ(TwoSidedPValue(HUGE_VAL, 7), 0);
  EXPECT_EQ(TwoSidedPValue(1e200, 7), 0);
  EXPECT_TRUE(std::isnan(TwoSidedPValue(std::nan(""), 7)));
}

}  // namespace
}  // namespace lengthwise::statistics
