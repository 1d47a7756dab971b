#include "statistics/paired_t_test.h"

#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::statistics {
namespace {

const std::vector<double> kFirst = {.993, .981, .999, .972, .990, .985};
const std::vector<double> kSecond = {.991, .984, .990, .966, .975, .987};

// scipy.stats.ttest_rel(first, second), SciPy 1.17.1.
TEST(PairedTTestTest, IsScipys) {
  const auto result = PairedTTest(kFirst, kSecond);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->t, 1.5993419699495495, 1e-10);
  EXPECT_EQ(result->degrees_of_freedom, 5);
  EXPECT_NEAR(result->p_value, 0.1706398209597133, 1e-10);
}

TEST(PairedTTestTest, TheOtherWayRoundChangesTheSignAlone) {
  EXPECT_DOUBLE_EQ(PairedTTest(kSecond, kFirst)->t, -PairedTTest(kFirst, kSecond)->t);
  EXPECT_DOUBLE_EQ(PairedTTest(kSecond, kFirst)->p_value, PairedTTest(kFirst, kSecond)->p_value);
}

TEST(PairedTTestTest, NeedsPairsThatVary) {
  EXPECT_EQ(PairedTTest({1, 2}, {1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PairedTTest({1}, {1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PairedTTest({1, 2}, {2, 3}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lengthwise::statistics
