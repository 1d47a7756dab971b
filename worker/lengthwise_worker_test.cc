// Tests the program as a process: flags, exit codes and signals.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/version.h"
#include "rpc/testing/raw_server.h"
#include "rpc/testing/test_certificates.h"
#include "worker/connection/testing/fake_worker_service.h"

namespace lengthwise::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using State = FakeWorkerService::State;

constexpr char kProgram[] = "worker/lengthwise_worker";

// The program as a child process with its output in a pipe. The pipe ends when no process holds its
// write end, so its end shows that a grandchild has exited, too.
class Program {
 public:
  // With `below_parent`, the child is a process that starts the program and waits.
  explicit Program(std::vector<std::string> arguments, bool below_parent = false) {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    output_ = ends[0];
    arguments.insert(arguments.begin(), kProgram);
    // Allocated before the fork, because other threads may hold the allocator's lock during it.
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      if (below_parent && fork() != 0) {
        while (true) pause();
      }
      execv(kProgram, pointers.data());
      _exit(127);
    }
    close(ends[1]);
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_);
  }

  void Signal(int signal) { kill(pid_, signal); }

  // Returns the program's output up to its end. Fails if it does not end within 30 s.
  std::string ReadToEnd() { return ReadUntil(""); }

  // As ReadToEnd, but returns once the program has written `awaited`, unless that is empty.
  std::string ReadUntil(const std::string& awaited) {
    std::string text;
    std::array<char, 4096> buffer;
    pollfd waiter = {.fd = output_, .events = POLLIN};
    while (true) {
      if (poll(&waiter, 1, 30'000) != 1) {
        ADD_FAILURE() << "the program does not end; it wrote: " << text;
        return text;
      }
      const ssize_t count = read(output_, buffer.data(), buffer.size());
      if (count <= 0) return text;
      text.append(buffer.data(), count);
      if (!awaited.empty() && text.find(awaited) != std::string::npos) return text;
    }
  }

  // Call after ReadToEnd.
  int ExitCode() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

std::pair<int, std::string> RunToEnd(const std::vector<std::string>& arguments) {
  Program program(arguments);
  std::string output = program.ReadToEnd();
  return {program.ExitCode(), std::move(output)};
}

TEST(LengthwiseWorker, HelpNamesTheFlags) {
  const auto [code, output] = RunToEnd({"--help"});
  EXPECT_EQ(code, 0);
  for (const char* flag : {"--server", "--device", "--kernels", "--threads", "--max_pack_size",
                           "--worker_id", "--buffer_bytes", "--spool_dir", "--spool_bytes",
                           "--exit_when_idle", "--exit_with_parent"}) {
    EXPECT_THAT(output, HasSubstr(flag));
  }
}

TEST(LengthwiseWorker, WrongFlagsExitWith2AndNameAcceptedValues) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "--server is required"},
      {{"--server", "h:1", "--device", "gpu"}, "auto, cpu or cuda:N"},
      {{"--server", "h:1", "--kernels", "fast"}, "--kernels"},
      {{"--server", "h:1", "--exit_when_idle", "soon"}, "duration"},
      {{"--server", "h:1", "--buffer_bytes", "0"}, "--buffer_bytes"},
      {{"--server", "h:1", "--spool_bytes", "-1"}, "--spool_bytes"},
      {{"--server", "h:1", "--metrics_listen", "9465"},
       "--metrics_listen: got \"9465\", expected HOST:PORT"},
      {{"--server", "h:1", "--metrics_listen", "0.0.0.0:0"}, "--insecure_metrics"},
  };
  for (const auto& [arguments, expected] : cases) {
    const auto [code, output] = RunToEnd(arguments);
    EXPECT_EQ(code, 2) << output;
    EXPECT_THAT(output, HasSubstr(expected));
  }
}

TEST(LengthwiseWorker, VersionNamesLibTorchAndAnUnusableGpu) {
  if (access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "this machine has a driver of its own";
  auto [code, output] = RunToEnd({"--version"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, MatchesRegex("lengthwise_worker [0-9.]+( \\(.*\\))?\nLibTorch 2[^\n]*\n"
                                   "with(out)? CUDA kernels\nno GPU\n"));
  // A machine with a GPU, and a LibTorch that supports only CPUs.
  setenv("LD_LIBRARY_PATH", "worker/test_driver", 1);
  std::tie(code, output) = RunToEnd({"--version"});
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, HasSubstr("\nwarning: there is a GPU, but LibTorch's CUDA library cannot be "
                                "loaded"));
  EXPECT_THAT(output, HasSubstr("; install LibTorch with CUDA"));
}

TEST(LengthwiseWorker, AutoFallsBackToTheCpuWithAReason) {
  if (access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "this machine has a driver of its own";
  FakeWorkerService server;
  server.Start();
  const std::vector<std::string> arguments = {"--server", server.address(), "--exit_when_idle",
                                              "3s", "--device"};
  setenv("LD_LIBRARY_PATH", "worker/test_driver", 1);
  auto chosen = arguments, named = arguments;
  chosen.push_back("auto");
  const auto [code, output] = RunToEnd(chosen);
  named.push_back("cuda");
  const auto [named_code, named_output] = RunToEnd(named);
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("--device auto takes the CPU: there is a GPU, but LibTorch's CUDA "
                                "library cannot be loaded"));
  EXPECT_EQ(named_code, 1) << "a device that was named is not replaced: " << named_output;
  server.With([](State& state) {
    ASSERT_EQ(state.registrations.size(), 1u);
    EXPECT_EQ(state.registrations[0].provenance().device(), "cpu");
  });
}

TEST(LengthwiseWorker, MissingDeviceExitsWith1) {
  FakeWorkerService server;
  server.Start();
  const auto [code, output] = RunToEnd({"--server", server.address(), "--device", "cuda:99"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr("cuda:99"));
  server.With([](State& state) { EXPECT_TRUE(state.registrations.empty()); });
}

TEST(LengthwiseWorker, TerminationSignalsEndItWith0) {
  for (const int signal : {SIGTERM, SIGINT}) {
    FakeWorkerService server;
    server.Start();
    Program program({"--server", server.address(), "--device", "cpu"});
    ASSERT_TRUE(server.WaitUntil([](const State& state) { return state.acquires >= 1; }));
    program.Signal(signal);
    program.ReadToEnd();
    EXPECT_EQ(program.ExitCode(), 0);
  }
}

TEST(LengthwiseWorker, RegistersItsDevice) {
  FakeWorkerService server;
  server.Start();
  Program program({"--server", server.address(), "--device", "cpu", "--threads", "1",
                   "--max_pack_size", "3", "--worker_id", "w-1"});
  ASSERT_TRUE(server.WaitUntil([](const State& state) { return !state.registrations.empty(); }));
  server.With([](State& state) {
    const v1::WorkerDescription& worker = state.registrations[0];
    EXPECT_EQ(worker.worker_id(), "w-1");
    EXPECT_EQ(worker.max_pack_size(), 3);
    EXPECT_EQ(worker.api_version(), platform::kWorkerApiVersion);
    EXPECT_EQ(worker.provenance().device(), "cpu");
    EXPECT_EQ(worker.provenance().threads(), 1);
  });
}

TEST(LengthwiseWorker, UsesOneThreadPerUsableCpu) {
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "this machine has one CPU";
  FakeWorkerService server;
  server.Start();
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  // The program inherits the affinity, as from taskset.
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  Program program({"--server", server.address(), "--device", "cpu"});
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
  ASSERT_TRUE(server.WaitUntil([](const State& state) { return state.acquires >= 1; }));
  server.With([](State& state) { EXPECT_EQ(state.registrations[0].provenance().threads(), 1); });
  program.Signal(SIGTERM);
  EXPECT_THAT(program.ReadToEnd(), HasSubstr(" 1 CPU thread (the CPU affinity)"));
}

TEST(LengthwiseWorker, WaitsForAServerThatStartsLater) {
  FakeWorkerService server;
  server.Start();  // reserves a port
  server.Stop();
  Program program({"--server", server.address(), "--device", "cpu", "--exit_when_idle", "20s"});
  server.Start();
  EXPECT_TRUE(server.WaitUntil([](const State& state) { return state.acquires >= 1; }));
}

TEST(LengthwiseWorker, WaitsWhileAProxyAnswersForTheServer) {
  FakeWorkerService server;
  server.Start();  // reserves a port
  server.Stop();
  const int port = std::stoi(server.address().substr(server.address().rfind(':') + 1));
  auto proxy = std::make_unique<rpc::RawServer>(rpc::RawServer::Answer{}, port);
  Program program({"--server", server.address(), "--device", "cpu"});
  EXPECT_THAT(program.ReadUntil("unreachable"), HasSubstr("perhaps a proxy"));
  proxy.reset();
  server.Start();
  EXPECT_TRUE(server.WaitUntil([](const State& state) { return state.acquires >= 1; }));
}

TEST(LengthwiseWorker, WaitsForUnknownHostsOfAList) {
  const std::string list = "no-such-host.invalid:1,no-such-host.invalid:2";
  const auto [code, output] =
      RunToEnd({"--server", list, "--device", "cpu", "--exit_when_idle", "300ms"});
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("server " + list + " unreachable (none of the hosts of " + list));
  Program program({"--server", list, "--device", "cpu"});
  EXPECT_THAT(program.ReadUntil("unreachable"), HasSubstr("unreachable"));
  program.Signal(SIGTERM);
  program.ReadToEnd();
  EXPECT_EQ(program.ExitCode(), 0);
}

TEST(LengthwiseWorker, WarnsOfAnUnknownHostOfAList) {
  FakeWorkerService server;
  server.Start();
  const auto [code, output] = RunToEnd({"--server", "no-such-host.invalid:1," + server.address(),
                                        "--device", "cpu", "--exit_when_idle", "3s"});
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("WARNING the server address no-such-host.invalid:1 is left out"));
  server.With([](State& state) { EXPECT_EQ(state.registrations.size(), 1U); });
}

TEST(LengthwiseWorker, WarnsOfACertificateThatExpiresSoon) {
  const rpc::TestAuthority house(testing::TempDir(), "house");
  const auto [code, output] = RunToEnd({"--server", "127.0.0.1:1", "--device", "cpu", "--tls_ca",
                                        house.ca(), "--exit_when_idle", "100ms"});
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("WARNING the certificate " + house.ca() + " expires at "));
}

TEST(LengthwiseWorker, EndsWhenIdleIfAsked) {
  FakeWorkerService server;
  server.Start();
  EXPECT_EQ(RunToEnd({"--server", server.address(), "--device", "cpu", "--exit_when_idle", "100ms"})
                .first,
            0);
}

TEST(LengthwiseWorker, EndsWithItsParentIfAsked) {
  FakeWorkerService server;
  server.Start();
  Program parent({"--server", server.address(), "--device", "cpu", "--exit_with_parent"},
                 /*below_parent=*/true);
  ASSERT_TRUE(server.WaitUntil([](const State& state) { return state.acquires >= 1; }));
  parent.Signal(SIGKILL);
  EXPECT_THAT(parent.ReadToEnd(),
              HasSubstr("SIGTERM"));  // the pipe ended, so the worker has exited
}

}  // namespace
}  // namespace lengthwise::worker
