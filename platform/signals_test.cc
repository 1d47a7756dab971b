#include "platform/signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

// Runs `body` in a child process, without other tests' threads and signal masks. Returns its wait
// status.
template <typename Body>
int StatusOfChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

int WaitFor(std::future<int>& future) {
  if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready) return -1;
  return future.get();
}

TEST(TerminationSignals, FirstSignalReachesTheHandler) {
  const int status = StatusOfChild([] {
    TerminationSignals signals;
    std::promise<int> got;
    std::future<int> future = got.get_future();
    signals.OnFirst([&](int signal) { got.set_value(signal); });
    kill(getpid(), SIGTERM);
    _exit(WaitFor(future) == SIGTERM ? 42 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(TerminationSignals, SigtermAfterSigtermIsIgnored) {
  const int status = StatusOfChild([] {
    TerminationSignals signals;
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGTERM);
    std::promise<void> called;
    signals.OnFirst([&](int) { called.set_value(); });
    called.get_future().wait();
    for (int i = 0; i < 3; ++i) kill(getpid(), SIGTERM);
    // The signal thread takes the signals in order: the SIGTERMs before this SIGINT.
    kill(getpid(), SIGINT);
    pause();  // until then
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
}

TEST(TerminationSignals, SecondSignalExitsAtOnce) {
  for (const int second : {SIGTERM, SIGINT}) {
    const int status = StatusOfChild([second] {
      TerminationSignals signals;
      std::promise<int> got;
      std::future<int> future = got.get_future();
      signals.OnFirst([&](int signal) { got.set_value(signal); });
      kill(getpid(), SIGINT);
      WaitFor(future);
      kill(getpid(), second);
      while (true) pause();
    });
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + second);
  }
}

TEST(TerminationSignals, EarlySignalIsKeptForTheHandler) {
  const int status = StatusOfChild([] {
    TerminationSignals signals;
    kill(getpid(), SIGINT);
    std::promise<int> got;
    std::future<int> future = got.get_future();
    signals.OnFirst([&](int signal) { got.set_value(signal); });
    _exit(WaitFor(future) == SIGINT ? 42 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(TerminationSignals, EndsWithoutASignal) {
  const int status = StatusOfChild([] { TerminationSignals signals; });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lengthwise::platform
