#include "monitoring/samples.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::monitoring {
namespace {

using ::testing::ElementsAre;

TEST(Histogram, CountsAValueInTheFirstBucketAboveIt) {
  v1::Histogram histogram = EmptyHistogram({1, 2, 5});
  for (const double value : {0.5, 1.0, 1.5, 5.0, 6.0, 100.0}) Observe(value, histogram);
  EXPECT_THAT(histogram.counts(), ElementsAre(2, 1, 1, 2));
  EXPECT_EQ(histogram.sum(), 114);
  EXPECT_EQ(Count(histogram), 6);
}

TEST(Histogram, InconsistentHistogramsAreNotSound) {
  EXPECT_TRUE(IsSound(EmptyHistogram({1, 2})));
  EXPECT_TRUE(IsSound(EmptyHistogram({})));
  EXPECT_FALSE(IsSound(v1::Histogram()));
  EXPECT_FALSE(IsSound(EmptyHistogram({2, 1})));
  EXPECT_FALSE(IsSound(EmptyHistogram({1, 1})));
  EXPECT_FALSE(IsSound(EmptyHistogram({1, std::numeric_limits<double>::quiet_NaN(), 1})));
  EXPECT_FALSE(IsSound(EmptyHistogram(std::vector<double>(kMostBuckets))));
  v1::Histogram negative = EmptyHistogram({1});
  negative.set_counts(0, -1);
  EXPECT_FALSE(IsSound(negative));
}

}  // namespace
}  // namespace lengthwise::monitoring
