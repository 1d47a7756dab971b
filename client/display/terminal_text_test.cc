#include "client/display/terminal_text.h"

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

}  // namespace
}  // namespace lengthwise::client
