#include "server/coordination/seed_statistics.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

const std::vector<double> kValues = {3.1, -2, 7.5, 0.25, 9, 1};

// numpy.mean(v), numpy.std(v, ddof=1), numpy.quantile(v, q), NumPy's defaults.
TEST(StatisticsTest, IsNumpys) {
  EXPECT_NEAR(Mean(kValues), 3.141666666666667, 1e-14);
  EXPECT_NEAR(SampleStandardDeviation(kValues), 4.305858412287457, 1e-13);
  EXPECT_EQ(Quantile(kValues, 0), -2);
  EXPECT_NEAR(Quantile(kValues, 0.1), -0.875, 1e-14);
  EXPECT_NEAR(Quantile(kValues, 0.5), 2.05, 1e-14);
  EXPECT_NEAR(Quantile(kValues, 0.9), 8.25, 1e-14);
  EXPECT_EQ(Quantile(kValues, 1), 9);
}

TEST(StatisticsTest, IsNotANumberWithoutValues) {
  EXPECT_TRUE(std::isnan(Mean({})));
  EXPECT_TRUE(std::isnan(Quantile({}, 0.5)));
  EXPECT_TRUE(std::isnan(SampleStandardDeviation({1})));
}

TEST(StatisticsTest, OneValueIsAllItsQuantiles) { EXPECT_EQ(Quantile({4}, 0.9), 4); }

}  // namespace
}  // namespace lengthwise::server
