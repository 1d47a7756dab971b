#include "platform/service_lifecycle.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
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

// Such as `systemctl reload` sends.
TEST(TerminationSignals, SighupOfAServiceEndsNothing) {
  const int status = StatusOfChild([] {
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    TerminationSignals signals;
    std::promise<int> got;
    std::future<int> future = got.get_future();
    signals.OnFirst([&](int signal) { got.set_value(signal); });
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    _exit(WaitFor(future) == SIGTERM ? 42 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(TerminationSignals, ClosedTerminalRequestsAShutdown) {
  const int status = StatusOfChild([] {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (grantpt(terminal) != 0 || unlockpt(terminal) != 0) _exit(2);
    if (dup2(open(ptsname(terminal), O_RDWR | O_NOCTTY), STDERR_FILENO) < 0) _exit(3);
    TerminationSignals signals;
    std::promise<int> got;
    std::future<int> future = got.get_future();
    signals.OnFirst([&](int signal) { got.set_value(signal); });
    close(terminal);
    kill(getpid(), SIGHUP);
    _exit(WaitFor(future) == SIGHUP ? 42 : 1);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
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

// The service manager's end of the socket.
class Manager {
 public:
  // `name` in systemd's form: a path, or "@" and an abstract name.
  explicit Manager(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    close(socket_);
    unsetenv("NOTIFY_SOCKET");
  }

  // Returns the message received.
  std::string Read() {
    char buffer[1024];
    const ssize_t size = recv(socket_, buffer, sizeof(buffer), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  const int socket_;
};

TEST(ServiceManager, ReceivesReadyAndStopping) {
  // A socket's path has at most 108 bytes, fewer than Bazel's directories.
  ASSERT_EQ(chdir(testing::TempDir().c_str()), 0);
  Manager manager("/proc/self/cwd/notify");
  EXPECT_TRUE(NotifyReady("serving on 127.0.0.1:7070\nREADY=0").ok());
  EXPECT_EQ(manager.Read(), "READY=1\nSTATUS=serving on 127.0.0.1:7070 READY=0");
  EXPECT_TRUE(NotifyStopping().ok());
  EXPECT_EQ(manager.Read(), "STOPPING=1");
  unlink("notify");
}

TEST(ServiceManager, MayHaveAnAbstractName) {
  Manager manager(absl::StrCat("@lengthwise-test-", getpid()));
  EXPECT_TRUE(NotifyReady("x").ok());
  EXPECT_EQ(manager.Read(), "READY=1\nSTATUS=x");
}

TEST(EndWithParent, StarterThatEndedBeforeMainIsNoticed) {
  unsetenv("LENGTHWISE_PARENT");
  EXPECT_EQ(StartingProcess(), getppid());
  EXPECT_EQ(EndWithParent(StartingProcess()), absl::OkStatus());
  ASSERT_EQ(prctl(PR_SET_PDEATHSIG, 0), 0);
  // This process stands for a starter that is not the parent any more.
  setenv("LENGTHWISE_PARENT", absl::StrCat(getpid()).c_str(), 1);
  EXPECT_EQ(StartingProcess(), getpid());
  EXPECT_EQ(EndWithParent(StartingProcess()).code(), absl::StatusCode::kCancelled);
  ASSERT_EQ(prctl(PR_SET_PDEATHSIG, 0), 0);
  unsetenv("LENGTHWISE_PARENT");
}

TEST(ServiceManager, IsOptional) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(NotifyReady("x").ok());
  setenv("NOTIFY_SOCKET", "", 1);
  EXPECT_TRUE(NotifyReady("x").ok());
  setenv("NOTIFY_SOCKET", "/no/such/socket", 1);
  EXPECT_FALSE(NotifyReady("x").ok());
  setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
  EXPECT_FALSE(NotifyReady("x").ok());
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace lengthwise::platform
