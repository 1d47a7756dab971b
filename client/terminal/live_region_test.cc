#include "client/terminal/live_region.h"

#include <sstream>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

// What was written since the last call.
std::string Take(std::ostringstream& out) {
  std::string text = out.str();
  out.str("");
  return text;
}

TEST(LiveRegionTest, WritesOnlyChangedLines) {
  std::ostringstream out;
  LiveRegion region(out);
  region.Update({"one", "two"}, 80);
  EXPECT_EQ(Take(out), "\x1b[?2026h\x1b[?25l\rone\x1b[K\n\rtwo\x1b[K\n\x1b[?2026l");
  region.Update({"one", "three"}, 80);
  EXPECT_EQ(Take(out), "\x1b[?2026h\x1b[2A\n\rthree\x1b[K\n\x1b[?2026l");
  region.Update({"one", "three"}, 80);
  EXPECT_EQ(Take(out), "");
}

TEST(LiveRegionTest, ClearsLinesThatAreGone) {
  std::ostringstream out;
  LiveRegion region(out);
  region.Update({"one", "two"}, 80);
  Take(out);
  region.Update({"one"}, 80);
  EXPECT_EQ(Take(out), "\x1b[?2026h\x1b[2A\n\x1b[J\x1b[?2026l");
}

TEST(LiveRegionTest, DrawsAgainWhenTheTerminalBrokeItsLines) {
  std::ostringstream out;
  LiveRegion region(out);
  region.Update({"12345678", "1234"}, 10);
  Take(out);
  region.Update({"12345", "1234"}, 5);  // the first took two rows of the narrow terminal
  EXPECT_EQ(Take(out), "\x1b[?2026h\r\x1b[3A\x1b[J\r12345\x1b[K\n\r1234\x1b[K\n\x1b[?2026l");
}

TEST(LiveRegionTest, ShowsTheCursorAtTheEnd) {
  std::ostringstream out;
  {
    LiveRegion region(out);
    region.Update({"one"}, 80);
    Take(out);
  }
  EXPECT_EQ(Take(out), "\x1b[?25h");
}

}  // namespace
}  // namespace lengthwise::client
