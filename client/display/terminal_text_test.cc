#include "client/display/terminal_text.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

TEST(TextTest, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("sin/cos"), 7);
  EXPECT_EQ(DisplayWidth("1–5 │"), 5);
  EXPECT_EQ(DisplayWidth("長さ"), 4);
  EXPECT_EQ(DisplayWidth("\x1b[31mred\x1b[0m"), 3);
}

TEST(TextTest, TruncatesToTheColumnWithAnEllipsis) {
  EXPECT_EQ(Truncate("randomized", 10), "randomized");
  EXPECT_EQ(Truncate("randomized", 5), "rand…");
  EXPECT_EQ(Truncate("長さの", 4), "長…");
  EXPECT_EQ(Truncate("anything", 0), "");
}

TEST(TextTest, PadsOnEitherSide) {
  EXPECT_EQ(PadRight("ab", 4), "ab  ");
  EXPECT_EQ(PadLeft("–", 3), "  –");
  EXPECT_EQ(PadLeft("abcdef", 3), "abcdef");
}

TEST(TextTest, WrapsAtSpaces) {
  EXPECT_EQ(Wrap("one two three four", 9, 2), "one two\n  three\n  four");
}

TEST(TextTest, PaintsOnlyWhenEnabled) {
  EXPECT_EQ(Palette(false)(Paint::kRed, "x"), "x");
  EXPECT_EQ(Palette(true)(Paint::kRed, "x"), "\x1b[31mx\x1b[0m");
}

std::string PlainBar(double fraction, int width) {
  return ProgressBar(fraction, width, Paint::kGreen, Palette(false));
}

TEST(ProgressBarTest, FillsInHalfColumns) {
  EXPECT_EQ(PlainBar(0, 4), "────");
  EXPECT_EQ(PlainBar(0.125, 4), "╸───");
  EXPECT_EQ(PlainBar(0.5, 4), "━━──");
  EXPECT_EQ(PlainBar(1, 4), "━━━━");
}

TEST(ProgressBarTest, IsNeverFullBeforeTheEnd) { EXPECT_EQ(PlainBar(0.9999, 4), "━━━╸"); }

TEST(ProgressBarTest, ClampsOutOfRangeFractions) {
  EXPECT_EQ(PlainBar(std::nan(""), 2), "──");
  EXPECT_EQ(PlainBar(-1, 2), "──");
  EXPECT_EQ(PlainBar(7, 2), "━━");
  EXPECT_EQ(PlainBar(0.5, 0), "");
}

}  // namespace
}  // namespace lengthwise::client
