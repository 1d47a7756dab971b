#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/event_checks.h"
#include "worker/connection/outbox.h"

namespace lengthwise::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(LogBudget, AnnouncesTheLimitOnce) {
  LogBudget budget;
  v1::LogLine line;
  for (int64_t i = 0; i < kMaxLogLines; ++i) {
    line.set_text("line");
    ASSERT_TRUE(budget.Take(line));
    ASSERT_EQ(line.text(), "line");
  }
  ASSERT_TRUE(budget.Take(line));
  EXPECT_THAT(line.text(), HasSubstr("further lines are dropped"));
  EXPECT_EQ(line.severity(), v1::LogLine::WARNING);
  EXPECT_FALSE(budget.Take(line));
  EXPECT_FALSE(budget.Take(line));
}

TEST(LogBudget, TruncatesLongLinesWithANote) {
  LogBudget budget;
  v1::LogLine line;
  line.set_text(std::string(100'000, 'x'));
  ASSERT_TRUE(budget.Take(line));
  EXPECT_THAT(line.text(), StartsWith(std::string(kMaxLogLineBytes, 'x') + "..."));
  EXPECT_THAT(line.text(), HasSubstr("(" + std::to_string(100'000 - kMaxLogLineBytes) + " bytes"));
}

TEST(LogBudget, StaysBelowTheServersLimits) {
  // Includes the line about dropped lines, and the worker's lines about the trial's own events.
  EXPECT_LE(kMaxLogLines + 100, server::kMaxLogLines);
  EXPECT_LE(static_cast<int64_t>(kMaxLogLineBytes) + 100, server::kMaxLogLineBytes);
}

TEST(PlainText, IsPrintableAndKeepsCharactersWhole) {
  EXPECT_EQ(PlainText("größer ≤ 😀", 100), "größer ≤ 😀");
  EXPECT_EQ(PlainText("a\xff\x1b[2J", 100), "a\\xff\\x1b[2J");
  EXPECT_EQ(PlainText("äää", 3), "ä... (4 bytes more)");
}

}  // namespace
}  // namespace lengthwise::worker
