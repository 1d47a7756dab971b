#include "platform/periodic_thread.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

TEST(PeriodicThreadTest, WorksUntilTheWorkIsDone) {
  int calls = 0;
  absl::Notification last;
  {
    PeriodicThread thread(absl::Milliseconds(1), [&] {
      if (++calls < 3) return true;
      last.Notify();
      return false;
    });
    ASSERT_TRUE(last.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  EXPECT_EQ(calls, 3);
}

TEST(PeriodicThreadTest, EndsDuringALongPause) {
  std::atomic<int> calls = 0;
  {
    PeriodicThread thread(absl::Hours(24), [&] { return ++calls > 0; });
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace lengthwise::platform
