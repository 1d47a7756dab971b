#include "client/display/numbers.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

TEST(NumbersTest, CountsHaveThousandsSeparators) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-123456), "-123,456");
}

TEST(NumbersTest, OneIsSingular) {
  EXPECT_EQ(Counted(0, "trial"), "0 trials");
  EXPECT_EQ(Counted(1, "trial"), "1 trial");
  EXPECT_EQ(Counted(1204, "trial"), "1,204 trials");
  EXPECT_EQ(Counted(1, "map is", "maps are"), "1 map is");
  EXPECT_EQ(Counted(2, "map is", "maps are"), "2 maps are");
}

TEST(NumbersTest, DurationsGrowUnits) {
  EXPECT_EQ(FormatClock(absl::Seconds(42)), "0:42");
  EXPECT_EQ(FormatClock(absl::Seconds(59.7)), "1:00");
  EXPECT_EQ(FormatClock(absl::Minutes(187)), "3:07:00");
  EXPECT_EQ(FormatClock(absl::Hours(52)), "2 d 4 h");
  EXPECT_EQ(FormatClock(absl::InfiniteDuration()), "?");
  EXPECT_EQ(FormatClock(absl::Seconds(-1)), "?");
}

TEST(NumbersTest, AccuraciesArePerCent) {
  EXPECT_EQ(FormatPercent(0.8834), "88.3");
  EXPECT_EQ(FormatPercent(1), "100.0");
  EXPECT_EQ(FormatPercent(std::nan("")), "–");
}

TEST(NumbersTest, LossesKeepFourDigits) {
  EXPECT_EQ(FormatLoss(2.19722), "2.197");
  EXPECT_EQ(FormatLoss(0.31254), "0.3125");
  EXPECT_EQ(FormatLoss(0.0000123), "1.2e-05");
  EXPECT_EQ(FormatLoss(std::nan("")), "nan");
}

TEST(NumbersTest, ExactNumbersReadBackTheSame) {
  EXPECT_EQ(FormatExact(0.001), "0.001");
  EXPECT_EQ(std::stod(FormatExact(0.1 + 0.2)), 0.1 + 0.2);
}

TEST(NumbersTest, BytesUseTheUnitBelow1024) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes(int64_t{5} << 30), "5.0 GiB");
  EXPECT_EQ(FormatBytes(int64_t{5000} << 40), "5000.0 TiB");
}

}  // namespace
}  // namespace lengthwise::client
