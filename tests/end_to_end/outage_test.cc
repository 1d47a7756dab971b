// An outage of the real server: the worker trains on, spools unsent events to disk, and delivers
// everything afterwards in the same attempt. Also checks that the command line shows a trial's log.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "rpc/testing/raw_server.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::end_to_end {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 6000;
constexpr int64_t kCheckpoints = 12;

std::string SlowTrial(const std::string& name, double learning_rate, int64_t steps = kSteps) {
  return absl::StrCat("name: ", name,
                      "\ntasks: bucket_sort\n"
                      "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
                      "encodings: sin_cos\n"
                      "learning_rates: ",
                      learning_rate,
                      "\nseeds: 0\n"
                      "training: {steps: ",
                      steps,
                      ", batch_size: 8, lengths: {min: 1, max: 10}, report_every_steps: 1,\n"
                      "           checkpoint_every_steps: ",
                      steps / kCheckpoints,
                      "}\n"
                      "evaluation: {lengths: [5, 10], sequences: 16}\n");
}

std::string NewDirectory(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::unique_ptr<platform::ChildProcess> Start(std::vector<std::string> arguments,
                                              const std::string& output) {
  auto process =
      platform::ChildProcess::Start({.arguments = std::move(arguments), .output_file = output});
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

// Bytes in the unnamed files that a worker holds open in its spool, a folder named "spool" here.
int64_t SpooledBytes(pid_t process) {
  int64_t bytes = 0;
  std::error_code gone;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", process, "/fd"), gone)) {
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    if (gone || target.string().find("/spool/temporary.") == std::string::npos) continue;
    const auto size = std::filesystem::file_size(entry.path(), gone);
    if (!gone) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

// `flags` are the worker's, as of ModuleFlags: with some, the trial has a user's module. The events
// of `steps` steps fill the worker's memory twice.
void ExpectTrainingThroughAnOutage(const std::string& directory,
                                   const std::vector<std::string>& flags, int64_t steps) {
  const int64_t buffer_bytes = 8 * steps;
  const std::string spool = directory + "/cache/spool";
  std::vector<std::string> server_flags = flags, worker_flags = flags;
  server_flags.resize(std::min<size_t>(flags.size(), 1));
  Server server(directory, absl::Seconds(60), server_flags);
  server.Start();
  worker_flags.insert(worker_flags.end(),
                      {"--buffer_bytes", absl::StrCat(buffer_bytes), "--spool_dir", spool,
                       "--data_cache_dir", directory + "/cache/data"});
  const auto worker = StartWorker(server, directory, kWorker, worker_flags);
  std::string specification = SlowTrial("outage", 0.001, steps);
  if (!flags.empty()) {
    specification = absl::StrReplaceAll(
        specification, {{"{name: encoder, blocks: 1, heads: 2, d_model: 16}", UploadModule(server)},
                        {"encodings: sin_cos", "encodings: own"}});
  }
  const std::string experiment = Submit(server, specification);
  Watcher watcher(server, experiment);
  ASSERT_TRUE(watcher.WatchUntil([](const v1::Event& event) { return event.has_checkpoint(); }));
  server.Kill();
  // Memory fills up soon. Events on disk prove training without the server.
  const absl::Time deadline = absl::Now() + kDeadline;
  while (SpooledBytes(worker->pid()) < buffer_bytes) {
    ASSERT_LT(absl::Now(), deadline) << TextOf(directory + "/worker.log");
    ASSERT_FALSE(worker->WaitFor(absl::Milliseconds(10)).has_value());
  }
  EXPECT_TRUE(std::filesystem::is_empty(spool)) << "no file is left if the worker is killed now";
  {
    // A proxy answers with a page in the server's place: HTTP status 200 without gRPC's.
    const std::string& address = server.address();
    rpc::RawServer proxy({}, std::stoi(address.substr(address.rfind(':') + 1)));
    while (proxy.calls() < 4) {
      ASSERT_LT(absl::Now(), deadline) << TextOf(directory + "/worker.log");
      ASSERT_FALSE(worker->WaitFor(absl::Milliseconds(10)).has_value());
    }
    const Result list = RunProgram({kClient, "list", "--server", address}, directory + "/list.log");
    EXPECT_EQ(list.code, 3);
    EXPECT_THAT(list.output, HasSubstr("no Lengthwise server, but perhaps a proxy"));
  }
  server.Start();
  ASSERT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));

  int64_t step = 0;
  int checkpoints = 0;
  bool completed = false;
  for (const v1::Event& event : watcher.events()) {
    if (event.sequence() > 0) {
      EXPECT_EQ(event.attempt(), 1);
    }
    for (const int64_t point : event.training_points().steps()) EXPECT_EQ(point, ++step);
    if (event.has_checkpoint()) ++checkpoints;
    completed |= event.outcome().kind() == v1::Outcome::COMPLETED;
  }
  EXPECT_EQ(step, steps);
  EXPECT_EQ(checkpoints, kCheckpoints);
  EXPECT_TRUE(completed);
  EXPECT_EQ(SpooledBytes(worker->pid()), 0);
}

TEST(OutageTest, WorkerTrainsThroughAnOutage) {
  ExpectTrainingThroughAnOutage(NewDirectory("outage"), {}, kSteps / 2);
}

TEST(OutageTest, WorkerTrainsAModuleThroughAnOutage) {
  const std::vector<std::string> flags = ModuleFlags();
  if (flags.empty()) GTEST_SKIP() << "no Python here has PyTorch";
  ExpectTrainingThroughAnOutage(NewDirectory("module_outage"), flags, kSteps / 4);
}

TEST(OutageTest, FailureReasonSurvivesARestart) {
  const std::string directory = NewDirectory("logs");
  Server server(directory, absl::Seconds(30));
  server.Start();
  const auto worker = StartWorker(server, directory);
  const std::string experiment = Submit(server, SlowTrial("hopeless", 1e30));
  Watcher watcher(server, experiment);
  ASSERT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));
  server.Kill();
  server.Start();
  const std::string log = directory + "/log";
  const auto client = Start({kClient, "logs", "hopeless/0", "--server", server.address()}, log);
  const auto exit = client->WaitFor(kDeadline);
  ASSERT_TRUE(exit.has_value() && exit->ok()) << TextOf(log);
  EXPECT_THAT(TextOf(log), HasSubstr("  state    running on "));
  EXPECT_THAT(TextOf(log), HasSubstr("  state    failed"));
  EXPECT_THAT(TextOf(log), HasSubstr("the loss was"));
}

TEST(OutageTest, LiveBackupResumesElsewhere) {
  const std::string directory = NewDirectory("backup");
  Server server(directory, absl::Seconds(5));
  server.Start();
  {
    const auto worker = StartWorker(server, directory);
    const std::string experiment = Submit(server, SlowTrial("saved", 0.001));
    Watcher watcher(server, experiment);
    ASSERT_TRUE(watcher.WatchUntil([](const v1::Event& event) { return event.has_checkpoint(); }));
    const std::string log = directory + "/client.log";
    const auto client = Start({kClient, "backup", "monday", "--server", server.address()}, log);
    const auto exit = client->WaitFor(kDeadline);
    ASSERT_TRUE(exit.has_value() && exit->ok()) << TextOf(log);
    EXPECT_THAT(TextOf(log), HasSubstr("--restore " + directory + "/data/backups/monday"));
  }
  server.Kill();
  const std::string ready = directory + "/restored_ready";
  const std::string log = directory + "/restored.log";
  const auto restored =
      Start({kServer, "--listen", server.address(), "--metrics_listen", "", "--data_dir",
             directory + "/restored", "--restore", directory + "/data/backups/monday",
             "--ready_file", ready, "--lease_duration", "2s", "--heartbeat_interval", "200ms"},
            log);
  const absl::Time deadline = absl::Now() + kDeadline;
  while (!std::filesystem::exists(ready)) {
    ASSERT_FALSE(restored->WaitFor(absl::Milliseconds(10)).has_value()) << TextOf(log);
    ASSERT_LT(absl::Now(), deadline);
  }
  const auto worker = StartWorker(server, directory);
  Watcher watcher(server, "experiments/saved-1");
  ASSERT_FALSE(watcher.WatchUntil([](const v1::Event&) { return false; }));
  // Reads the history again: the first watcher may have seen points that the resumption replaced.
  Watcher late(server, "experiments/saved-1");
  ASSERT_FALSE(late.WatchUntil([](const v1::Event&) { return false; }));
  int64_t last_step = 0;
  int64_t resumed_from = 0;
  for (const v1::Event& event : late.events()) {
    // Every step is reported.
    for (const int64_t step : event.training_points().steps()) ASSERT_EQ(step, ++last_step);
    resumed_from = std::max(resumed_from, event.state_change().resumed_from_step());
  }
  EXPECT_GE(resumed_from, 500) << "from the checkpoint in the backup";
  EXPECT_EQ(last_step, kSteps);
}

}  // namespace
}  // namespace lengthwise::end_to_end
