#include "platform/limited_log.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

using ::testing::ElementsAre;

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
