#include "client/connection/private_service.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Writes a shell program; it gets the real program's arguments as "$@".
std::string WriteProgram(const std::string& name, const std::string& script) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << "#!/bin/sh\n" << script;
  chmod(path.c_str(), 0755);
  return path;
}

// Reports an address in LOCK. The data directory is the second argument.
constexpr char kDescribes[] =
    "printf '%s %s %s here\\n127.0.0.1:4711\\n' $$ \"$(cat /proc/sys/kernel/random/boot_id)\" "
    "\"$(readlink /proc/self/ns/pid)\" > \"$2/LOCK\"\n";
// Reports it and then sleeps.
const std::string kServes = absl::StrCat(kDescribes, "exec sleep 600\n");

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
  auto service = PrivateService::Open(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  EXPECT_EQ((*service)->address(), "127.0.0.1:4711");
  EXPECT_TRUE((*service)->Check().ok());
}

TEST_F(PrivateServiceTest, TrainingReleasesLeasesAndReadingDoesNot) {
  UseServer("echo \"$@\" > \"$2/arguments\"\n" + kServes);
  for (const bool trains : {false, true}) {
    options_.release_leases = trains;
    auto service = PrivateService::Open(options_);
    ASSERT_TRUE(service.ok()) << service.status();
    std::string arguments;
    std::getline(std::ifstream(options_.data_dir + "/arguments"), arguments);
    EXPECT_EQ(arguments.find(" --release_leases") != std::string::npos, trains) << arguments;
  }
}

TEST_F(PrivateServiceTest, ShowsTheLogOfAFailedServerStart) {
  UseServer("echo 'another server has the directory open'\nexit 4\n");
  const auto service = PrivateService::Open(options_);
  EXPECT_THAT(service.status().message(), HasSubstr("the private server exited with code 4"));
  EXPECT_THAT(service.status().message(), HasSubstr("another server has the directory open"));
}

TEST_F(PrivateServiceTest, LogOfARunningServerStays) {
  UseServer("echo serving\n" + kServes);
  auto service = PrivateService::Open(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  // As a server of an older release does, which writes nothing in the file.
  const auto lock = platform::FileLock::Acquire(options_.data_dir + "/LOCK");
  ASSERT_TRUE(lock.ok()) << lock.status();
  options_.patience = absl::Milliseconds(50);
  const auto other = PrivateService::Open(options_);
  EXPECT_EQ(other.status().message(),
            "a `lengthwise run` or a server is using " + options_.data_dir +
                "; wait until it ends, or interrupt it with Ctrl-C (a run can be resumed)");
  EXPECT_EQ(Tail((*service)->log_directory() + "/server.log", 1), "  serving");
}

TEST_F(PrivateServiceTest, StartRemovesLogsOfWorkersThatHadJoined) {
  UseServer(kServes);
  const std::string logs = options_.data_dir + "/logs";
  std::filesystem::create_directories(logs);
  for (const char* name : {"worker-12-1.log", "worker-12-2.log", "worker-1.log", "mine.log"}) {
    std::ofstream(logs + "/" + name) << "text";
  }
  const auto service = PrivateService::Open(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(logs)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, UnorderedElementsAre("worker-1.log", "mine.log", "server.log"));
}

TEST_F(PrivateServiceTest, EmptyLogComesWithTheFreeSpace) {
  UseServer("exit 1\n");
  const auto service = PrivateService::Open(options_);
  EXPECT_THAT(service.status().message(), AllOf(HasSubstr("/logs/server.log is empty, and "),
                                                HasSubstr(" bytes are free on its file system")));
}

// A server that, like a private one, does what its pipe tells: the file `told` gets "stays" for a
// byte and "ends" for the end.
constexpr char kFollows[] =
    "if [ -n \"$(head -c 1)\" ]; then echo stays > \"$2/told\"; else echo ends > \"$2/told\"; fi\n";

TEST_F(PrivateServiceTest, ServerStaysForOtherUsers) {
  UseServer(absl::StrCat(kDescribes, kFollows));
  auto service = PrivateService::Open(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  const auto other = platform::FileLock::Share(options_.data_dir + "/USERS");
  ASSERT_TRUE(other.ok()) << other.status();
  service->reset();
  std::string told;
  for (const absl::Time deadline = absl::Now() + absl::Seconds(30);
       told.empty() && absl::Now() < deadline;) {
    std::getline(std::ifstream(options_.data_dir + "/told"), told);
  }
  EXPECT_EQ(told, "stays");
}

TEST_F(PrivateServiceTest, NewcomersWaitForAServerThatEnds) {
  UseServer(kServes);
  std::filesystem::create_directories(options_.data_dir);
  auto ending = platform::FileLock::Acquire(options_.data_dir + "/USERS");
  ASSERT_TRUE(ending.ok()) << ending.status();
  options_.start_timeout = absl::Milliseconds(50);
  EXPECT_THAT(PrivateService::Open(options_).status().message(),
              HasSubstr("another `lengthwise` is using " + options_.data_dir));
  ending->reset();
  options_.start_timeout = absl::Seconds(30);
  EXPECT_TRUE(PrivateService::Open(options_).ok());
}

TEST_F(PrivateServiceTest, BackupIsRefusedAndUnchanged) {
  UseServer(kServes);
  std::filesystem::create_directories(options_.data_dir);
  std::ofstream(options_.data_dir + "/manifest.json") << "{}";
  EXPECT_FALSE(platform::IsBackup(options_.data_dir)) << "a manifest of something else";
  std::ofstream(options_.data_dir + "/lengthwise.db").close();
  EXPECT_EQ(PrivateService::Open(options_).status().message(),
            options_.data_dir + " is a backup; restore it first: `lengthwise_server --restore " +
                options_.data_dir + " --data_dir NEW`");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(options_.data_dir),
                          std::filesystem::directory_iterator()),
            2);
  // As release 0.2.0 opened backups.
  std::ofstream(options_.data_dir + "/LOCK").close();
  EXPECT_TRUE(PrivateService::Open(options_).ok());
}

TEST_F(PrivateServiceTest, ReadOnlyDirectoryComesWithAdvice) {
  UseServer(kServes);
  std::filesystem::create_directories(options_.data_dir + "/logs");
  std::ofstream(options_.data_dir + "/LOCK").close();
  // Root may write everywhere.
  const bool root = geteuid() == 0;
  ASSERT_EQ(chmod((options_.data_dir + "/LOCK").c_str(), 0444), 0);
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const absl::Cleanup restore = [root] {
    if (root && seteuid(0) != 0) std::abort();
  };
  EXPECT_THAT(PrivateService::Open(options_).status().message(),
              HasSubstr("Permission denied; copy the directory to a place where you may write, or "
                        "ask its owner for a `lengthwise report`"));
}

TEST_F(PrivateServiceTest, FindsTheServerOfAnotherProcess) {
  std::filesystem::create_directories(options_.data_dir);
  EXPECT_EQ(FindRunningServer(options_.data_dir)->has_value(), false);
  const std::string path = options_.data_dir + "/LOCK";
  // Left by a server that was killed.
  std::ofstream(path) << getpid() << "\n127.0.0.1:1\n";
  EXPECT_EQ(FindRunningServer(options_.data_dir)->has_value(), false) << "the lock is free";
  auto lock = platform::FileLock::Acquire(path);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_THAT(
      std::string(FindRunningServer(options_.data_dir, absl::ZeroDuration()).status().message()),
      StartsWith("a `lengthwise run` or a server is using "));
  ASSERT_EQ((*lock)->Describe("127.0.0.1:4711\n"), absl::OkStatus());
  const auto found = FindRunningServer(options_.data_dir);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_EQ((*found)->address, "127.0.0.1:4711");
  EXPECT_FALSE((*found)->needs_credentials);
  const std::string name = absl::StrCat("lengthwise_server (process ", getpid(), ")");
  EXPECT_THAT((*found)->name, StartsWith(name));
  EXPECT_EQ((*found)->Check(), absl::OkStatus());

  auto joined = PrivateService::Open(options_);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)->address(), "127.0.0.1:4711");
  EXPECT_EQ((*joined)->joined()->name, (*found)->name);
  EXPECT_EQ((*joined)->Check(), absl::OkStatus());

  // As a server that is stopping.
  ASSERT_EQ((*lock)->Describe(""), absl::OkStatus());
  EXPECT_THAT((*found)->Check().message(), HasSubstr("has ended: " + name));
  EXPECT_EQ((*joined)->Check(), (*found)->Check());
  EXPECT_THAT(FindRunningServer(options_.data_dir, absl::ZeroDuration()).status().message(),
              HasSubstr(" is using "));
  lock->reset();
  EXPECT_EQ(FindRunningServer(options_.data_dir)->has_value(), false);
}

TEST_F(PrivateServiceTest, HostOfTheServerIsNamed) {
  std::filesystem::create_directories(options_.data_dir);
  const std::string path = options_.data_dir + "/LOCK";
  const auto lock = platform::FileLock::Acquire(path);
  ASSERT_TRUE(lock.ok()) << lock.status();
  std::ofstream(path) << getpid() << " another-boot pid:[1] node17\nunix:/tmp/lengthwise-1/a\n";
  EXPECT_EQ(FindRunningServer(options_.data_dir, absl::ZeroDuration()).status().message(),
            "a `lengthwise run` or a server on node17 (another machine or container) is using " +
                options_.data_dir +
                "; wait until it ends, or interrupt it with Ctrl-C (a run can be resumed)");
}

TEST_F(PrivateServiceTest, SocketThatIsGoneIsNamed) {
  std::filesystem::create_directories(options_.data_dir);
  const std::string socket = options_.data_dir + "/socket";
  const auto lock = platform::FileLock::Acquire(options_.data_dir + "/LOCK");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_EQ((*lock)->Describe("unix:" + socket + "\n"), absl::OkStatus());
  EXPECT_THAT(std::string(FindRunningServer(options_.data_dir).status().message()),
              AllOf(StartsWith(absl::StrCat("lengthwise_server (process ", getpid(), ")")),
                    HasSubstr(", but its socket " + socket + " is gone, for example because ")));
}

TEST_F(PrivateServiceTest, ServerWithTokensIsToBeAskedByItsAddress) {
  std::filesystem::create_directories(options_.data_dir);
  const auto lock = platform::FileLock::Acquire(options_.data_dir + "/LOCK");
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_EQ((*lock)->Describe("127.0.0.1:4711\nneeds credentials\n"), absl::OkStatus());
  const auto found = FindRunningServer(options_.data_dir);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_TRUE((*found)->needs_credentials);
  EXPECT_THAT(PrivateService::Open(options_).status().message(),
              HasSubstr("ask it with --server 127.0.0.1:4711 and your token instead"));
}

TEST_F(PrivateServiceTest, OtherWorkersGoOnWithoutAKilledOne) {
  UseServer(kServes);
  // The first worker goes on.
  const std::string first = testing::TempDir() + "/goes_on";
  std::filesystem::remove_all(first);
  UseWorker("if mkdir " + first + " 2> /dev/null; then exec sleep 600; fi\nkill -9 $$\n");
  auto service = PrivateService::Open(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  ASSERT_TRUE((*service)->StartWorker("cpu", 1, "experiments/sort-1").ok());
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!std::filesystem::exists(first)) {
    ASSERT_LT(absl::Now(), deadline);
    absl::SleepFor(absl::Milliseconds(5));
  }
  ASSERT_TRUE((*service)->StartWorker("cpu", 1, "experiments/sort-1").ok());
  std::vector<std::string> lost;
  while (lost.empty() && absl::Now() < deadline) {
    ASSERT_EQ((*service)->Check(), absl::OkStatus());
    lost = (*service)->TakeLostWorkers();
  }
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_THAT(lost[0], StartsWith("the private worker-2 was killed by signal 9 (Killed), often "
                                  "because memory ran out (--workers 1 needs less)"));
  EXPECT_EQ((*service)->Check(), absl::OkStatus());
  EXPECT_THAT((*service)->TakeLostWorkers(), SizeIs(0)) << "told once";
}

TEST_F(PrivateServiceTest, NoticesAWorkerThatDies) {
  UseServer(kServes);
  UseWorker("echo \"no device $4 for $8: $*\"\nkill -9 $$\n");
  auto service = PrivateService::Open(options_);
  ASSERT_TRUE(service.ok()) << service.status();
  ASSERT_TRUE((*service)->StartWorker("cuda:7", 1, "experiments/sort-1").ok());
  absl::Status status;
  for (const absl::Time deadline = absl::Now() + absl::Seconds(30);
       status.ok() && absl::Now() < deadline;) {
    status = (*service)->Check();
  }
  EXPECT_THAT(status.message(), HasSubstr("the private worker-1 was killed by signal 9 (Killed)"));
  EXPECT_THAT(status.message(), HasSubstr("no device cuda:7 for experiments/sort-1: "));
  EXPECT_THAT(status.message(),
              HasSubstr("--server_data_dir " + options_.data_dir + "/artifacts/sort-1/data"))
      << "which has the server's files of examples";
  EXPECT_EQ((*service)->Check(), status) << "asked again";
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
  auto service = PrivateService::Open(options_);
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
