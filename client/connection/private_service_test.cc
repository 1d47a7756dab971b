#include "client/connection/private_service.h"

#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

// Writes a shell program; it gets the real program's arguments as "$@".
std::string WriteProgram(const std::string& name, const std::string& script) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << "#!/bin/sh\n" << script;
  chmod(path.c_str(), 0755);
  return path;
}

// Reports an address and then sleeps. The ready file is the eighth argument.
constexpr char kServes[] = "echo 127.0.0.1:4711 > \"$8\"\nexec sleep 600\n";

class PrivateServiceTest : public testing::Test {
 protected:
  void UseServer(const std::string& script) {
    setenv("LENGTHWISE_SERVER_BINARY", WriteProgram("server", script).c_str(), 1);
  }
  void UseWorker(const std::string& script) {
    setenv("LENGTHWISE_WORKER_BINARY", WriteProgram("worker", script).c_str(), 1);
  }
  PrivateService::Options options_ = {
      .data_dir =
          testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(PrivateServiceTest, KnowsTheAddressWhenItHasStarted) {
  UseServer(kServes);
  auto service = PrivateService::Start(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  EXPECT_EQ((*service)->address(), "127.0.0.1:4711");
  EXPECT_TRUE((*service)->Check().ok());
}

TEST_F(PrivateServiceTest, ShowsTheLogOfAFailedServerStart) {
  UseServer("echo 'another server has the directory open'\nexit 4\n");
  const auto service = PrivateService::Start(options_);
  EXPECT_THAT(service.status().message(), HasSubstr("the private server exited with code 4"));
  EXPECT_THAT(service.status().message(), HasSubstr("another server has the directory open"));
}

TEST_F(PrivateServiceTest, LogOfARunningServerStays) {
  UseServer("echo serving\n" + std::string(kServes));
  auto service = PrivateService::Start(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  // As the server does.
  const auto lock = platform::FileLock::Acquire(options_.data_dir + "/LOCK");
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto other = PrivateService::Start(options_);
  EXPECT_EQ(other.status().message(),
            "a `lengthwise run` or a server is using " + options_.data_dir +
                "; wait until it ends, or interrupt it with Ctrl-C (a run can be resumed)");
  EXPECT_EQ(Tail((*service)->log_directory() + "/server.log", 1), "  serving");
}

TEST_F(PrivateServiceTest, NoticesAWorkerThatDies) {
  UseServer(kServes);
  UseWorker("echo \"no device $4 for $8\"\nkill -9 $$\n");
  auto service = PrivateService::Start(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  ASSERT_TRUE((*service)->StartWorker("cuda:7", 1, "experiments/sort-1").ok());
  absl::Status status;
  for (const absl::Time deadline = absl::Now() + absl::Seconds(30);
       status.ok() && absl::Now() < deadline;) {
    status = (*service)->Check();
  }
  EXPECT_THAT(status.message(), HasSubstr("the private worker-1 was killed by signal 9 (Killed)"));
  EXPECT_THAT(status.message(), HasSubstr("no device cuda:7 for experiments/sort-1"));
}

// The first worker counts its signals until some time after the second worker has ended, which Stop
// waits for first.
TEST_F(PrivateServiceTest, RegressionWorkerIsAskedToStopOnce) {
  const std::string directory = testing::TempDir() + "/once";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  UseServer(kServes);
  UseWorker("cd " + directory +
            "\n"
            "if mkdir first 2> /dev/null; then\n"
            "  signals=0; trap 'signals=$((signals + 1))' TERM; touch first/ready\n"
            "  while [ ! -e ended ]; do sleep 0.01; done\n"
            "  for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02; done\n"
            "  echo $signals > signals\n"
            "else\n"
            "  trap 'touch ended; exit' TERM; touch ready\n"
            "  while :; do sleep 0.01; done\n"
            "fi\n");
  auto service = PrivateService::Start(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  for (const char* ready : {"/first/ready", "/ready"}) {
    ASSERT_TRUE((*service)->StartWorker("cpu", 1, "experiments/sort-1").ok());
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (!std::filesystem::exists(directory + ready)) {
      ASSERT_LT(absl::Now(), deadline);
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
  (*service)->Stop(absl::Seconds(30));
  std::string signals;
  std::getline(std::ifstream(directory + "/signals"), signals);
  EXPECT_EQ(signals, "1");
}

TEST_F(PrivateServiceTest, NamesMissingPrograms) {
  unsetenv("LENGTHWISE_WORKER_BINARY");
  const auto program = FindProgram("lengthwise_worker", "nowhere", "LENGTHWISE_WORKER_BINARY");
  EXPECT_EQ(program.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(program.status().message(), HasSubstr("set LENGTHWISE_WORKER_BINARY to its path"));
}

TEST(DefaultDataDirectoryTest, FollowsTheEnvironment) {
  setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(DefaultDataDirectory(), "/data/lengthwise/runs");
  unsetenv("XDG_DATA_HOME");
  setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(DefaultDataDirectory(), "/home/ada/.local/share/lengthwise/runs");
}

}  // namespace
}  // namespace lengthwise::client
