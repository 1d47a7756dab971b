#include "platform/failpoint.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::platform {
namespace {

// The environment is read once per process, so each test runs in its own. Returns that process's
// wait status.
int InProcess(const std::string& orders, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("LENGTHWISE_FAILPOINTS", orders.c_str(), 1);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

absl::Status Store(int& stored) {
  LENGTHWISE_FAILPOINT_OR_RETURN("store.before");
  ++stored;
  LENGTHWISE_FAILPOINT("store.after");
  return absl::OkStatus();
}

TEST(FailpointTest, WithoutOrdersNothingHappens) {
  EXPECT_EQ(InProcess("",
                      [] {
                        int stored = 0;
                        return Store(stored).ok() && stored == 1 ? 0 : 1;
                      }),
            0);
}

TEST(FailpointTest, CrashIsSigkillAtTheNamedTime) {
  const int status = InProcess("store.after=crash@3", [] {
    int stored = 0;
    for (int i = 0; i < 2; ++i) Store(stored).IgnoreError();
    if (stored != 2) return 1;
    Store(stored).IgnoreError();
    return 2;  // not reached
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(FailpointTest, ErrorIsReturnedBeforeTheOperation) {
  EXPECT_EQ(InProcess("store.before=error;store.after=crash",
                      [] {
                        int stored = 0;
                        return absl::IsUnavailable(Store(stored)) && stored == 0 ? 0 : 1;
                      }),
            0);
  EXPECT_EQ(InProcess("store.before=full@2",
                      [] {
                        int stored = 0;
                        if (!Store(stored).ok()) return 1;
                        if (!absl::IsResourceExhausted(Store(stored))) return 2;
                        return Store(stored).ok() && stored == 2 ? 0 : 3;
                      }),
            0);
}

TEST(FailpointTest, DelayTakesAtLeastItsTime) {
  EXPECT_EQ(InProcess("store.before=delay(30)",
                      [] {
                        const absl::Time start = absl::Now();
                        int stored = 0;
                        return Store(stored).ok() && absl::Now() - start >= absl::Milliseconds(30)
                                   ? 0
                                   : 1;
                      }),
            0);
}

TEST(FailpointTest, MalformedOrderEndsTheProcess) {
  for (const std::string orders :
       {"store.before", "store.before=crsh", "store.before=crash@0", "store.before=delay(x)"}) {
    const int status = InProcess(orders, [] {
      int stored = 0;
      return Store(stored).ok() ? 0 : 1;
    });
    ASSERT_TRUE(WIFEXITED(status)) << orders << " ended with " << status;
    EXPECT_EQ(WEXITSTATUS(status), 2) << orders;
  }
}

TEST(FailpointTest, RecordsReachedNamesOnceAndActionsAlways) {
  const std::string file = testing::TempDir() + "/reached";
  ASSERT_EQ(DeleteFile(file), absl::OkStatus());
  EXPECT_EQ(InProcess("store.after=full@2;store.before=full@3",
                      [&] {
                        setenv("LENGTHWISE_FAILPOINTS_REACHED", file.c_str(), 1);
                        int stored = 0;
                        return Store(stored).ok() && Store(stored).ok() ? 0 : 1;
                      }),
            0);
  EXPECT_EQ(*ReadFile(file), "store.before\nstore.after\nstore.after acts\n");
}

}  // namespace
}  // namespace lengthwise::platform
