#include <csignal>

#include "client/display/terminal.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

TEST(InterruptGuardTest, CountsSignalsWhileItLives) {
  {
    InterruptGuard guard;
    EXPECT_EQ(guard.count(), 0);
    std::raise(SIGINT);
    std::raise(SIGTERM);
    EXPECT_EQ(guard.count(), 2);
    {
      InterruptGuard inner;
      std::raise(SIGHUP);
      std::raise(SIGPIPE);
    }
    EXPECT_EQ(guard.count(), 4);
  }
  struct sigaction after = {};
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
  sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
}

TEST(InterruptGuardTest, IgnoredSignalsStayIgnored) {
  for (const int signal : {SIGHUP, SIGPIPE}) {  // by nohup and systemd
    ASSERT_NE(std::signal(signal, SIG_IGN), SIG_ERR);
    {
      const InterruptGuard guard;
      std::raise(signal);
      EXPECT_EQ(guard.count(), 0);
    }
    EXPECT_EQ(std::signal(signal, SIG_DFL), SIG_IGN);
  }
}

}  // namespace
}  // namespace lengthwise::client
