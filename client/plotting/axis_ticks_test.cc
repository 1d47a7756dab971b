#include "client/plotting/axis_ticks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Labels(const Axis& axis, double low, double high, int most) {
  std::vector<std::string> labels;
  for (const Tick& tick : AxisTicks(axis, low, high, most)) labels.push_back(tick.label);
  return labels;
}

TEST(AxisTicksTest, StandAtRoundValuesWithinTheRange) {
  EXPECT_THAT(Labels({}, 0, 500, 6), ElementsAre("0", "100", "200", "300", "400", "500"));
  EXPECT_THAT(Labels({}, 1, 60, 5), ElementsAre("20", "40", "60"));
  EXPECT_THAT(Labels({}, 0, 2'000'000, 5), ElementsAre("0", "500k", "1M", "1.5M", "2M"));
  EXPECT_THAT(Labels({}, 0, 20'000, 5), ElementsAre("0", "5k", "10k", "15k", "20k"));
  EXPECT_THAT(Labels({}, 0, 2000, 3), ElementsAre("0", "1000", "2000"));
  EXPECT_THAT(Labels({}, -0.3, 0.3, 5), ElementsAre("-0.2", "0", "0.2"));
}

TEST(AxisTicksTest, CountsHaveNoTicksBetweenThem) {
  const Axis axis{.ticks = Axis::Ticks::kCounts};
  EXPECT_THAT(Labels(axis, 1, 3, 12), ElementsAre("1", "2", "3"));
  EXPECT_THAT(Labels(axis, 1, 60, 5), ElementsAre("20", "40", "60"));
}

TEST(AxisTicksTest, AccuraciesAreWrittenInPerCent) {
  const Axis axis{.ticks = Axis::Ticks::kPercent};
  EXPECT_THAT(Labels(axis, 0, 1, 6), ElementsAre("0 %", "20 %", "40 %", "60 %", "80 %", "100 %"));
}

TEST(AxisTicksTest, LogarithmicAxesHaveDecadesAndFewOfThemTwosAndFives) {
  const Axis axis{.scale = Axis::Scale::kLog10};
  EXPECT_THAT(Labels(axis, 0.04, 2.5, 8), ElementsAre("0.05", "0.1", "0.2", "0.5", "1", "2"));
  EXPECT_THAT(Labels(axis, 1e-5, 2, 8),
              ElementsAre("1e-05", "0.0001", "0.001", "0.01", "0.1", "1"));
}

TEST(AxisTicksTest, PowersOfTwoAreWrittenInFull) {
  const Axis axis{.scale = Axis::Scale::kLog2};
  EXPECT_THAT(Labels(axis, 1024, 16384, 8), ElementsAre("1024", "2048", "4096", "8192", "16384"));
  EXPECT_THAT(Labels(axis, 1024, 16384, 3), ElementsAre("1024", "4096", "16384"));
}

TEST(AxisTicksTest, NoTicksWhereTheyWouldMeanNothing) {
  EXPECT_THAT(Labels({.ticks = Axis::Ticks::kNone}, 0, 1, 5), ElementsAre());
}

}  // namespace
}  // namespace lengthwise::client
