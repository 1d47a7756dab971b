#include "platform/process_usage.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

TEST(ProcessUsage, ReportsThisProcess) {
  const ProcessUsage before = ReadProcessUsage();
  std::vector<char> memory(64 << 20, 1);
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  double sum = 0;
  do {
    for (const char byte : memory) sum += byte;
  } while (ReadProcessUsage().cpu_seconds < before.cpu_seconds + 0.05);
  const ProcessUsage after = ReadProcessUsage();
  EXPECT_GT(sum, 0);
  EXPECT_GE(after.resident_bytes - before.resident_bytes, 60 << 20);
  EXPECT_EQ(after.open_files - before.open_files, 1);
  EXPECT_GE(after.max_open_files, after.open_files);
  close(file);
}

TEST(ProcessUsage, KnowsWhenItStarted) {
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  const double age = now - ReadProcessUsage().start_time_seconds;
  // The clock may be set while the test runs.
  EXPECT_GT(age, -2);
  EXPECT_LT(age, 300);
}

TEST(ReadSchedulingTimes, CountsEachThreadsRunAndWaitTime) {
  const std::map<int, SchedulingTimes> before = ReadSchedulingTimes();
  if (before.empty()) GTEST_SKIP() << "the kernel does not count";
  const int self = static_cast<int>(gettid());
  ASSERT_TRUE(before.contains(self));
  const double cpu_seconds = ReadProcessUsage().cpu_seconds;
  while (ReadProcessUsage().cpu_seconds < cpu_seconds + 0.05) {
  }
  SchedulingTimes after = ReadSchedulingTimes()[self];
  EXPECT_GT(after.running_seconds - before.at(self).running_seconds, 0.04);
  EXPECT_GE(after.waiting_seconds, before.at(self).waiting_seconds);
}

}  // namespace
}  // namespace lengthwise::platform
