#include "client/embedded/private_service.h"

#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

// A program made of shell lines; the arguments of the real one are "$@".
std::string WriteProgram(const std::string& name, const std::string& script) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << "#!/bin/sh\n" << script;
  chmod(path.c_str(), 0755);
  return path;
}

// Serves an address and then waits for its end. The ready file is the eighth argument.
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

TEST_F(PrivateServiceTest, ShowsTheLogOfAServerThatDoesNotStart) {
  UseServer("echo 'another server has the directory open'\nexit 4\n");
  const auto service = PrivateService::Start(options_);
  EXPECT_THAT(service.status().message(), HasSubstr("the private server exited with code 4"));
  EXPECT_THAT(service.status().message(), HasSubstr("another server has the directory open"));
}

TEST_F(PrivateServiceTest, NoticesAWorkerThatDies) {
  UseServer(kServes);
  UseWorker("echo \"no device $4\"\nkill -9 $$\n");
  auto service = PrivateService::Start(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  ASSERT_TRUE((*service)->StartWorker("cuda:7", 1).ok());
  absl::Status status;
  for (const absl::Time deadline = absl::Now() + absl::Seconds(30);
       status.ok() && absl::Now() < deadline;) {
    status = (*service)->Check();
  }
  EXPECT_THAT(status.message(), HasSubstr("the private worker-1 was killed by signal 9 (Killed)"));
  EXPECT_THAT(status.message(), HasSubstr("no device cuda:7"));
}

TEST_F(PrivateServiceTest, SaysWhatIsMissing) {
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
