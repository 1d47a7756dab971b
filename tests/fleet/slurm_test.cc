// Workers on a real Slurm, which this test starts. The fleet grows with the queue, makes room for
// other jobs within its grace, is filled up again, and shrinks to nothing when the queue is empty.
// The history must equal that of an undisturbed run.
//
// Durations are printed, not asserted: deadlines allow for a busy machine.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "proto/fleet_service.grpc.pb.h"
#include "tests/end_to_end/measured_history.h"
#include "tests/end_to_end/programs.h"
#include "tests/fleet/slurm_cluster.h"

namespace lengthwise::fleet {
namespace {

using end_to_end::kClient;
using end_to_end::kDeadline;
using end_to_end::kWorker;
using end_to_end::Server;
using end_to_end::Submit;
using end_to_end::Watcher;
using ::testing::HasSubstr;
using ::testing::Not;

// Two packs; each trial takes some seconds.
constexpr char kSpecification[] = R"yaml(
name: fleet
tasks: reverse_string
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: [none, sin_cos]
learning_rates: 0.001
seeds: 0
training: {steps: 12000, batch_size: 8, lengths: 1..4, report_every_steps: 50}
evaluation: {lengths: [4, 8], sequences: 32}
)yaml";

class SlurmTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto cluster = SlurmCluster::Start();
    if (cluster.ok()) {
      cluster_ = cluster->release();
    } else {
      missing_ = new absl::Status(cluster.status());
    }
  }
  static void TearDownTestSuite() {
    delete cluster_;
    delete missing_;
  }

  SlurmTest()
      : directory_(EmptyDirectory()),
        server_(directory_ + "/server", absl::Seconds(60), {"--allow_python_networks"}) {}

  static std::string EmptyDirectory() {
    std::string directory = absl::StrCat(
        testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory);
    return directory;
  }

  void SetUp() override {
    if (missing_ != nullptr && absl::IsUnavailable(*missing_)) {
      GTEST_SKIP() << "Slurm is not available: " << missing_->message();
    }
    ASSERT_EQ(missing_, nullptr) << missing_->message();
    server_.Start();
    fleet_ = v1::FleetService::NewStub(
        grpc::CreateChannel(server_.address(), grpc::InsecureChannelCredentials()));
  }

  void TearDown() override {
    if (HasFailure() && cluster_ != nullptr) {
      std::cout << cluster_->Logs();
      for (const auto& log : std::filesystem::directory_iterator(directory_)) {
        if (log.path().extension() == ".log") {
          std::cout << "== " << log.path() << "\n" << Contents(log.path());
        }
      }
    }
  }

  static std::string Contents(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // The command line of `lengthwise workers COMMAND`, with the test's own job name.
  std::vector<std::string> Workers(const std::string& command,
                                   const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {kClient,   "workers",    command,
                                          "--slurm", "--job_name", JobName()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string JobName() const { return std::filesystem::path(directory_).filename().string(); }

  std::vector<std::string> Up(const std::vector<std::string>& more,
                              const std::string& worker = kWorker) const {
    std::vector<std::string> all = {"--server",   server_.address(),
                                    "--worker",   std::filesystem::absolute(worker).string(),
                                    "--log_dir",  directory_,
                                    "--interval", "500ms",
                                    "--idle",     "3s"};
    all.insert(all.end(), more.begin(), more.end());
    return Workers("up", all);
  }

  // Runs `workers up` until it is signalled. Its output goes to up.log.
  std::unique_ptr<platform::ChildProcess> StartUp(const std::vector<std::string>& more,
                                                  const std::string& worker = kWorker) const {
    auto process = platform::ChildProcess::Start({.arguments = Up(more, worker),
                                                  .environment = cluster_->environment(),
                                                  .output_file = directory_ + "/up.log"});
    EXPECT_TRUE(process.ok()) << process.status();
    return *std::move(process);
  }

  int64_t AliveWorkers() {
    grpc::ClientContext context;
    v1::ListWorkersResponse workers;
    EXPECT_TRUE(fleet_->ListWorkers(&context, {}, &workers).ok());
    int64_t alive = 0;
    for (const v1::Worker& worker : workers.workers()) alive += worker.alive() ? 1 : 0;
    return alive;
  }

  // Returns true if the condition became true before the deadline.
  static bool Await(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + kDeadline;
    while (!condition()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(50));
    }
    return true;
  }

  static void Print(const std::string& what, absl::Time since) {
    std::cout << what << ": " << absl::FormatDuration(absl::Now() - since) << "\n";
  }

  bool NoJobIsLeft() const { return cluster_->JobsLeft(JobName()).empty(); }

  // Expects that a fleet trains an experiment of two packs of one trial each, which `submit`
  // creates, although another job takes a node meanwhile. `flags` are those of a worker beside the
  // fleet.
  void ExpectTheFleetFollowsTheQueue(const std::function<std::string(Server&)>& submit,
                                     const std::vector<std::string>& flags = {});

  static SlurmCluster* cluster_;
  static absl::Status* missing_;
  const std::string directory_;
  Server server_;
  std::unique_ptr<v1::FleetService::Stub> fleet_;
};

SlurmCluster* SlurmTest::cluster_ = nullptr;
absl::Status* SlurmTest::missing_ = nullptr;

absl::Time TimeOf(const v1::Event& event) {
  return absl::FromUnixSeconds(event.time().seconds()) + absl::Nanoseconds(event.time().nanos());
}

void SlurmTest::ExpectTheFleetFollowsTheQueue(const std::function<std::string(Server&)>& submit,
                                              const std::vector<std::string>& flags) {
  // While the file `slow` exists, workers train for a tenth of the time, so that no trial ends
  // before the fleet is full again.
  const std::string slow = directory_ + "/slow";
  std::ofstream(slow).close();
  const std::string pausing = directory_ + "/pausing_worker";
  std::ofstream(pausing) << "#!/bin/sh\n"
                         << "trap : TERM\n"  // the worker has it from Slurm, too
                         << "log=$0.$SLURM_JOB_ID.log\n"
                         << std::filesystem::absolute(kWorker).string() << " \"$@\" >$log 2>&1 &\n"
                         << "while kill -0 $! 2>/dev/null; do\n"
                         << "  sleep 0.05\n"
                         << "  [ -e " << slow << " ] && grep -q ': running ' $log || continue\n"
                         << "  kill -STOP $!; sleep 0.5; kill -CONT $!\n"
                         << "done\n"
                         << "wait $!\n";
  std::filesystem::permissions(pausing, std::filesystem::perms::owner_all);
  const auto up = StartUp({"--max", "2"}, pausing);
  const absl::Time submitted = absl::Now();
  const std::string experiment = submit(server_);
  ASSERT_TRUE(Await([&] { return AliveWorkers() == 2; })) << "one worker for each pack";
  Print("two workers alive after the submission", submitted);

  Watcher watcher(server_, experiment);
  std::set<std::string> training;
  ASSERT_TRUE(watcher.WatchUntil([&](const v1::Event& event) {
    if (event.has_training_points()) training.insert(event.trial());
    return training.size() == 2;
  }));
  // Another job takes a node. Its worker returns its lease before it is killed.
  const std::string urgent = directory_ + "/urgent.sh";
  std::ofstream(urgent) << "#!/bin/sh\nsleep 3\n";
  const absl::Time preempted = absl::Now();
  cluster_->Run({"sbatch", "--parsable", "--partition=urgent", "--output=/dev/null", urgent});
  ASSERT_TRUE(watcher.WatchUntil([](const v1::Event& event) {
    return event.has_state_change() && event.state_change().to() == v1::QUEUED;
  }));
  const v1::Event returned = watcher.events().back();
  EXPECT_THAT(returned.state_change().reason(), HasSubstr("the worker was asked to stop"))
      << "by itself, not because its lease expired";
  std::cout << "the lease is back after sbatch of the urgent job: "
            << absl::FormatDuration(TimeOf(returned) - preempted) << "\n";
  ASSERT_TRUE(Await([&] { return AliveWorkers() == 1; }));
  const absl::Time freed = absl::Now();
  ASSERT_TRUE(Await([&] { return AliveWorkers() == 2; })) << "filled up when the node is free";
  Print("two workers again after one had gone (the node is taken for 3 s)", freed);
  std::filesystem::remove(slow);

  EXPECT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));
  const absl::Time ended = absl::Now();
  int resumed = 0;
  for (const v1::Event& event : watcher.events()) {
    if (event.has_state_change() && event.state_change().resumed_from_step() > 0) ++resumed;
  }
  EXPECT_EQ(resumed, 1) << "from the checkpoint that it had stored";
  ASSERT_TRUE(Await([&] { return NoJobIsLeft(); }));
  Print("no job left after the last trial (workers are idle for 3 s)", ended);
  up->Signal(SIGINT);
  EXPECT_TRUE(up->WaitFor(kDeadline)->ok());

  // The same experiment without disturbance.
  Server undisturbed(directory_ + "/undisturbed", absl::Seconds(60), {"--allow_python_networks"});
  undisturbed.Start();
  const auto worker =
      end_to_end::StartWorker(undisturbed, directory_ + "/undisturbed", kWorker, flags);
  Watcher expected(undisturbed, submit(undisturbed));
  EXPECT_FALSE(expected.WatchUntil([](const v1::Event&) { return false; }));
  const end_to_end::History history = end_to_end::Fold(expected.events());
  EXPECT_EQ(history.loss_curves.size(), 2U);
  EXPECT_TRUE(end_to_end::Fold(watcher.events()) == history);
}

TEST_F(SlurmTest, FleetFollowsTheQueue) {
  ExpectTheFleetFollowsTheQueue([](Server& server) {
    return Submit(server, absl::StrReplaceAll(kSpecification, {{"steps: 12000", "steps: 4000"}}));
  });
}

// Workers of the fleet get their Python from the environment, and the module from the server.
TEST_F(SlurmTest, FleetTrainsAModule) {
  const std::vector<std::string> flags = end_to_end::ModuleFlags();
  if (flags.empty()) GTEST_SKIP() << "no Python here has PyTorch";
  setenv("XDG_CACHE_HOME", directory_.c_str(), 1);
  setenv("LENGTHWISE_WORKER_FLAGS", absl::StrJoin(flags, " ").c_str(), 1);
  const absl::Cleanup restore = [] { unsetenv("LENGTHWISE_WORKER_FLAGS"); };
  ExpectTheFleetFollowsTheQueue(
      [](Server& server) {
        return Submit(
            server, absl::StrReplaceAll(kSpecification,
                                        {{"{name: encoder, blocks: 1, heads: 2, d_model: 16}",
                                          end_to_end::UploadModule(server)},
                                         {"[none, sin_cos]",
                                          "[own, {name: own, randomized: true, max_position: 64}]"},
                                         {"steps: 12000", "steps: 600"},
                                         {"report_every_steps: 50", "report_every_steps: 5"}}));
      },
      flags);
}

TEST_F(SlurmTest, SubmitsNothingThatNoNodeCanRun) {
  Submit(server_, kSpecification);
  const end_to_end::Result result =
      end_to_end::RunProgram(Up({"--once", "--", "--cpus-per-task=1000"}), directory_ + "/once.log",
                             cluster_->environment());
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("not submitted: sbatch says: "));
  EXPECT_THAT(result.output, HasSubstr("Requested node configuration is not available"));
  EXPECT_TRUE(NoJobIsLeft());
}

// Slurm accepts a job that exceeds the partition's time limit, and never runs it.
TEST_F(SlurmTest, UnrunnableJobHoldsFurtherOnesBack) {
  Submit(server_, kSpecification);
  const auto up = StartUp({"--backlog", "1", "--", "--time=2:00:00"});
  ASSERT_TRUE(Await([&] {
    return Contents(directory_ + "/up.log").find("no node can run job") != std::string::npos;
  }));
  EXPECT_THAT(Contents(directory_ + "/up.log"), HasSubstr("(Partition"));
  up->Signal(SIGINT);
  EXPECT_TRUE(up->WaitFor(kDeadline)->ok());
  const std::string left = cluster_->JobsLeft(JobName());
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), 1) << left;
  const end_to_end::Result down = end_to_end::RunProgram(
      Workers("down", {}), directory_ + "/down.log", cluster_->environment());
  EXPECT_EQ(down.code, 0) << down.output;
  EXPECT_TRUE(NoJobIsLeft());
}

TEST_F(SlurmTest, SubmitsNothingForAnEmptyQueue) {
  const end_to_end::Result result =
      end_to_end::RunProgram(Up({"--once"}), directory_ + "/once.log", cluster_->environment());
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("0 packs wait; 0 busy, 0 idle workers"));
  EXPECT_TRUE(NoJobIsLeft());
}

TEST_F(SlurmTest, FailedStartsPauseTheFleet) {
  const std::string broken = directory_ + "/broken_worker";
  std::ofstream(broken)
      << "#!/bin/sh\necho 'libtorch.so: cannot open shared object file'\nexit 1\n";
  std::filesystem::permissions(broken, std::filesystem::perms::owner_all);
  Submit(server_, kSpecification);
  const auto up = StartUp({}, broken);
  ASSERT_TRUE(Await([&] {
    return Contents(directory_ + "/up.log").find("jobs in a row failed") != std::string::npos;
  }));
  EXPECT_THAT(Contents(directory_ + "/up.log"), HasSubstr("cannot open shared object file"));
  EXPECT_THAT(Contents(directory_ + "/up.log"), HasSubstr("never reached the server"));
  EXPECT_TRUE(Await([&] { return NoJobIsLeft(); }));
  up->Signal(SIGINT);
  EXPECT_TRUE(up->WaitFor(kDeadline)->ok());
}

// Each of these workers reaches the server and dies during its first lease.
TEST_F(SlurmTest, WorkersThatCrashPauseTheFleet) {
  const std::string crashing = directory_ + "/crashing_worker";
  std::ofstream(crashing) << "#!/bin/sh\nlog=$0.$SLURM_JOB_ID\n"
                          << std::filesystem::absolute(kWorker).string() << " \"$@\" >$log 2>&1 &\n"
                          << "until grep -q ': running ' $log || ! kill -0 $!; do sleep 0.1; done\n"
                          << "kill -9 $!\nwait $!\n";
  std::filesystem::permissions(crashing, std::filesystem::perms::owner_all);
  std::string specification(kSpecification);
  absl::StrReplaceAll({{"seeds: 0", "seeds: 0..9"}}, &specification);
  Submit(server_, specification);
  const auto up = StartUp({}, crashing);
  ASSERT_TRUE(Await([&] {
    return Contents(directory_ + "/up.log").find("jobs in a row failed") != std::string::npos;
  }));
  EXPECT_THAT(Contents(directory_ + "/up.log"), HasSubstr("(NonZeroExitCode)"));
  EXPECT_THAT(Contents(directory_ + "/up.log"), Not(HasSubstr("never reached the server")));
  EXPECT_TRUE(Await([&] { return NoJobIsLeft(); }));
  up->Signal(SIGINT);
  EXPECT_TRUE(up->WaitFor(kDeadline)->ok());
}

TEST_F(SlurmTest, DownDrainsWorkersAndCancelsPendingJobs) {
  const std::string experiment = Submit(server_, absl::StrCat(kSpecification, "priority: 1\n"));
  ASSERT_EQ(
      end_to_end::RunProgram(Up({"--once"}), directory_ + "/once.log", cluster_->environment())
          .code,
      0);
  Watcher watcher(server_, experiment);
  ASSERT_TRUE(
      watcher.WatchUntil([](const v1::Event& event) { return event.has_training_points(); }));
  const end_to_end::Result down = end_to_end::RunProgram(
      Workers("down", {}), directory_ + "/down.log", cluster_->environment());
  EXPECT_EQ(down.code, 0) << down.output;
  EXPECT_THAT(down.output, HasSubstr("No job is left."));
  EXPECT_TRUE(NoJobIsLeft());
  ASSERT_TRUE(watcher.WatchUntil([](const v1::Event& event) {
    return event.has_state_change() && event.state_change().to() == v1::QUEUED;
  }));
  EXPECT_THAT(watcher.events().back().state_change().reason(),
              HasSubstr("the worker was asked to stop"));
}

}  // namespace
}  // namespace lengthwise::fleet
