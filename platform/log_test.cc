#include "platform/log.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

TEST(Log, LineHasUtcTimeLevelAndText) {
  // 1700000000 s after the epoch is 2023-11-14 22:13:20 UTC.
  const absl::Time time = absl::FromUnixMillis(1'700'000'000'042);
  EXPECT_EQ(FormatLogLine(LogLevel::kInfo, time, "ready"), "2023-11-14T22:13:20.042Z INFO ready\n");
  EXPECT_EQ(FormatLogLine(LogLevel::kWarning, time, "x"), "2023-11-14T22:13:20.042Z WARNING x\n");
  EXPECT_EQ(FormatLogLine(LogLevel::kError, time, ""), "2023-11-14T22:13:20.042Z ERROR \n");
}

TEST(Log, LineMayBeJson) {
  EXPECT_EQ(FormatLogLine(LogLevel::kWarning, absl::UnixEpoch(), "no \"a\\b\"\n\x1b[2J", true),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"WARNING\",\"text\":\"no "
            "\\\"a\\\\b\\\" \\\\x1b[2J\"}\n");
}

TEST(Log, JournalGetsThePriorityOfLinesThatAreSevereEnough) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    struct stat status;
    fstat(STDERR_FILENO, &status);
    const std::string stream = absl::StrCat(status.st_dev, ":", status.st_ino);
    setenv("JOURNAL_STREAM", stream.c_str(), 1);
    LogInfo("a");
    LogWarning("b");
    LogError("c");
    SetUpLog("text", "warning");
    LogInfo("d");
    LogWarning("e");
    _exit(0);
  }
  close(ends[1]);
  std::string text(1024, '\0');
  size_t size = 0;
  for (ssize_t got = 1; got > 0; size += static_cast<size_t>(got)) {
    got = read(ends[0], text.data() + size, text.size() - size);
    ASSERT_GE(got, 0);
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  text.resize(size);
  EXPECT_THAT(text, MatchesRegex("<6>[^\n]* INFO a\n<4>[^\n]* WARNING b\n<3>[^\n]* ERROR c\n"
                                 "<4>[^\n]* WARNING e\n"));
}

TEST(Log, EntryIsOnePrintableLine) {
  EXPECT_EQ(FormatLogLine(LogLevel::kInfo, absl::UnixEpoch(), "a\nb\x1b[2Jc\u009b2J"),
            "1970-01-01T00:00:00.000Z INFO a b\\x1b[2Jc\\u009b2J\n");
}

TEST(Log, OtherBytesStayAsTheyAre) {
  EXPECT_EQ(FormatLogLine(LogLevel::kInfo, absl::UnixEpoch(), "α→β"),
            "1970-01-01T00:00:00.000Z INFO α→β\n");
}

TEST(Log, WritesToStderr) {
  testing::internal::CaptureStderr();
  LogWarning("disk is nearly full");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(written.ends_with("Z WARNING disk is nearly full\n")) << written;
}

TEST(LimitedLog, WritesSomeLinesAndCountsTheRest) {
  std::chrono::steady_clock::time_point now;
  std::vector<std::string> lines;
  LimitedLog log(
      absl::Seconds(10), [&] { return now; },
      [&](LogLevel, absl::string_view line) { lines.emplace_back(line); });
  for (int i = 0; i < 1000; ++i) log.Warning("refused");
  EXPECT_THAT(lines, ElementsAre("refused", "refused", "refused", "refused", "refused"));
  now += std::chrono::seconds(10);
  lines.clear();
  log.Warning("refused");
  log.Warning("refused");
  EXPECT_THAT(lines, ElementsAre("refused (995 similar lines were suppressed)", "refused"));
}

}  // namespace
}  // namespace lengthwise::platform
