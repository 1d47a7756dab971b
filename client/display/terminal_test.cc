#include "client/display/terminal.h"

#include <cmath>
#include <sstream>

#include "client/display/testing/screen.h"
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

using Lines = std::vector<std::string>;

// Returns the output since the last call.
std::string Take(std::ostringstream& out) {
  std::string text = out.str();
  out.str("");
  return text;
}

TEST(LiveRegionTest, WritesOnlyChangedLines) {
  std::ostringstream out;
  LiveRegion region(out);
  region.Update({"one", "two"}, {.width = 80});
  EXPECT_EQ(Take(out), "\x1b[?2026h\x1b[?25l\rone\x1b[K\n\rtwo\x1b[K\n\x1b[?2026l");
  region.Update({"one", "three"}, {.width = 80});
  EXPECT_EQ(Take(out), "\x1b[?2026h\x1b[2A\n\rthree\x1b[K\n\x1b[?2026l");
  region.Update({"one", "three"}, {.width = 80});
  EXPECT_EQ(Take(out), "");
}

TEST(LiveRegionTest, ClearsRemovedLines) {
  std::ostringstream out;
  LiveRegion region(out);
  region.Update({"one", "two"}, {.width = 80});
  Take(out);
  region.Update({"one"}, {.width = 80});
  EXPECT_EQ(Take(out), "\x1b[?2026h\x1b[2A\n\x1b[J\x1b[?2026l");
}

TEST(LiveRegionTest, RedrawsAfterTheTerminalWrappedLines) {
  std::ostringstream out;
  LiveRegion region(out);
  region.Update({"12345678", "1234"}, {.width = 10});
  Take(out);
  region.Update({"12345", "1234"}, {.width = 5});  // the first took two rows of the narrow terminal
  EXPECT_EQ(Take(out), "\x1b[?2026h\r\x1b[3A\x1b[J\r12345\x1b[K\n\r1234\x1b[K\n\x1b[?2026l");
}

TEST(LiveRegionTest, RedrawsTheVisiblePartOfALowerTerminal) {
  std::ostringstream out;
  LiveRegion region(out);
  region.Update({"1", "2", "3", "4", "5"}, {.width = 10, .height = 10});
  Take(out);
  region.Update({"1", "2"}, {.width = 10, .height = 3});  // "1" to "3" have left at the top
  EXPECT_EQ(Take(out), "\x1b[?2026h\r\x1b[2A\x1b[J\r1\x1b[K\n\r2\x1b[K\n\x1b[?2026l");
}

TEST(LiveRegionTest, ScreenShowsLastUpdateAfterResizes) {
  std::ostringstream out;
  LiveRegion region(out);
  TerminalSize size = {.width = 12, .height = 6};
  Screen screen(size);
  screen.Write("$ watch\n");
  const auto draw = [&](const std::vector<std::string>& lines) {
    region.Update(lines, size);
    screen.Write(Take(out));
    return screen.Lines();
  };
  EXPECT_EQ(draw({"one", "two", "three"}), Lines({"$ watch", "one", "two", "three"}));
  EXPECT_EQ(draw({"one", "2", "three"}), Lines({"$ watch", "one", "2", "three"}));
  EXPECT_EQ(draw({"one"}), Lines({"$ watch", "one"}));
  EXPECT_EQ(draw({"1", "2", "3", "4", "5"}), Lines({"1", "2", "3", "4", "5"}));
  size.height = 4;  // "1" and "2" leave at the top
  screen.Resize(size);
  EXPECT_EQ(draw({"1", "2", "and more"}), Lines({"1", "2", "and more"}));
  size = {.width = 20, .height = 8};
  screen.Resize(size);
  EXPECT_EQ(draw({"1", "2", "3", "4"}), Lines({"1", "2", "3", "4"}));
  EXPECT_FALSE(screen.cursor_is_shown());
}

TEST(LiveRegionTest, ShowsTheCursorAtTheEnd) {
  std::ostringstream out;
  {
    LiveRegion region(out);
    region.Update({"one"}, {.width = 80});
    Take(out);
  }
  EXPECT_EQ(Take(out), "\x1b[?25h");
}

}  // namespace

}  // namespace lengthwise::client
