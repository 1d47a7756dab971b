#include "client/display/progress_bar.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

std::string Plain(double fraction, int width) {
  return ProgressBar(fraction, width, Paint::kGreen, Palette(false));
}

TEST(ProgressBarTest, FillsInHalfColumns) {
  EXPECT_EQ(Plain(0, 4), "────");
  EXPECT_EQ(Plain(0.125, 4), "╸───");
  EXPECT_EQ(Plain(0.5, 4), "━━──");
  EXPECT_EQ(Plain(1, 4), "━━━━");
}

TEST(ProgressBarTest, IsNeverFullBeforeTheEnd) { EXPECT_EQ(Plain(0.9999, 4), "━━━╸"); }

TEST(ProgressBarTest, TakesWhatIsOutOfRangeForTheNearerEnd) {
  EXPECT_EQ(Plain(std::nan(""), 2), "──");
  EXPECT_EQ(Plain(-1, 2), "──");
  EXPECT_EQ(Plain(7, 2), "━━");
  EXPECT_EQ(Plain(0.5, 0), "");
}

}  // namespace
}  // namespace lengthwise::client
