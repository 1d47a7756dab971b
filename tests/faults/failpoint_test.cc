// Crashes server and worker at every named failpoint and checks the promises afterwards.
//
// One experiment exercises everything that moves a lease or a commit: submission, leases, points,
// checkpoints, a draining worker, a killed worker, the end. Then a stored model is re-evaluated, a
// third experiment is cancelled and deleted, and a backup is made. At the failpoint under test, one
// process kills itself with SIGKILL and is restarted.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/mutex.h"
#include "proto/administration_service.grpc.pb.h"
#include "server/storage/backup.h"
#include "server/storage/s3_artifact_store.h"
#include "server/storage/s3_client.h"
#include "server/storage/testing/s3_test_store.h"
#include "tests/faults/fleet.h"
#include "tests/faults/history.h"

namespace lengthwise::faults {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr char kSpecification[] = R"(
name: disturbed
tasks: bucket_sort
networks: encoder
encodings: [{name: relative, randomized: true, max_position: 256},
            {name: relative, randomized: true, max_position: 512}]
learning_rates: 0.001
seeds: [1, 2]
training: {steps: 64, batch_size: 1, lengths: {min: 1, max: 10}, report_every_steps: 2,
           checkpoint_every_steps: 24}
evaluation: {lengths: [5, 10, 20], sequences: 8, every_steps: 25}
)";

constexpr char kEndless[] = R"(
name: endless
tasks: bucket_sort
networks: encoder
encodings: none
learning_rates: 0.001
seeds: [1]
training: {steps: 1000000, batch_size: 1, lengths: {min: 1, max: 10}, report_every_steps: 1000,
           checkpoint_every_steps: 1000000}
evaluation: {lengths: [5], sequences: 8}
)";

struct Failpoint {
  std::string name;
  bool of_worker = false;
  bool can_fail = false;  // declared with LENGTHWISE_FAILPOINT_OR_RETURN
};

// Checkpoints in an object store take another way than files.
bool OccursHere(const std::string& failpoint) {
  if (server::TestsRunOnS3() && failpoint != "artifact.tree.before") {  // it has other files, too
    for (const char* of_files : {"artifact.", "upload.", "file.delete."}) {
      if (absl::StartsWith(failpoint, of_files)) return false;
    }
    return true;
  }
  return !absl::StartsWith(failpoint, "object.");
}

// Collects them from the sources of the programs under test.
std::vector<Failpoint> AllFailpoints() {
  const std::regex use("LENGTHWISE_FAILPOINT(_OR_RETURN)?\\(\"([^\"]+)\"\\)");
  std::vector<Failpoint> all;
  for (const std::string folder : {"platform", "server", "worker"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             folder, std::filesystem::directory_options::follow_directory_symlink)) {
      if (entry.path().extension() != ".cc") continue;
      const std::string text = *platform::ReadFile(entry.path().string());
      for (std::sregex_iterator match(text.begin(), text.end(), use), end; match != end; ++match) {
        if (!OccursHere((*match)[2])) continue;
        all.push_back({.name = (*match)[2],
                       .of_worker = folder == "worker",
                       .can_fail = (*match)[1].matched});
      }
    }
  }
  return all;
}

std::string Only(const std::string& action, const std::string& name, int hit) {
  return absl::StrCat(name, "=", action, "@", hit);
}

class Scenario {
 public:
  // `server` and `worker` are the environments of the first server and of the workers until the
  // first death.
  Scenario(const std::string& name, Environment server, Environment worker)
      : fleet_({.directory = testing::TempDir() + "/" + name,
                .server_program = "tests/faults/server_with_failpoints",
                .worker_command = {"tests/faults/scripted_worker_with_failpoints",
                                   "--step_microseconds", "2000", "--hold", HoldFile(name)},
                .lease_duration = absl::Milliseconds(1500)}),
        hold_file_(HoldFile(name)),
        server_environment_(std::move(server)),
        worker_environment_(std::move(worker)) {}

  // Runs the scenario and returns the broken promises.
  std::vector<std::string> Play();
  int deaths() const { return fleet_.deaths(); }

 private:
  static std::string HoldFile(const std::string& name) {
    return testing::TempDir() + "/" + name + ".hold";
  }
  void Expect(bool condition, const std::string& what) {
    if (!condition) problems_.push_back(what);
  }
  void StartWorker(int index) {
    fleet_.StartWorker(index, fleet_.deaths() == 0 ? worker_environment_ : Environment());
  }
  void DisturbWorkers(const std::string& experiment);
  std::string Evaluate(const std::string& trial);
  void CancelAndDelete();
  void MakeBackup();
  void CheckBackup();
  void CheckHistory(const std::string& experiment);
  void CheckArtifacts(const std::vector<std::string>& experiments);
  void Compare(const std::set<std::string>& expected, const std::set<std::string>& found);

  Fleet fleet_;
  const std::string hold_file_;
  const Environment server_environment_;
  const Environment worker_environment_;
  std::vector<std::string> problems_;
};

bool AnyRuns(const std::vector<v1::Trial>& trials, int64_t checkpoint_step,
             const std::string& worker) {
  return std::any_of(trials.begin(), trials.end(), [&](const v1::Trial& trial) {
    return trial.state() == v1::RUNNING && trial.checkpoint_step() >= checkpoint_step &&
           trial.worker() == worker;
  });
}

std::vector<std::string> Scenario::Play() {
  fleet_.StartServer(server_environment_);  // if it dies here, Submit revives it
  const std::string experiment = fleet_.Submit(kSpecification, "first");
  Expect(fleet_.Submit(kSpecification, "first") == experiment,
         "a repeated request created another experiment");
  DisturbWorkers(experiment);
  Expect(fleet_.AwaitTrials(experiment, AllEnded), "not all trials ended");
  CheckHistory(experiment);
  if (!problems_.empty()) return problems_;

  const std::string evaluation = Evaluate(fleet_.Trials(experiment).front().name());
  Expect(fleet_.AwaitTrials(evaluation, AllEnded), "the evaluation did not end");
  CheckHistory(evaluation);
  CancelAndDelete();
  Expect(fleet_.Experiments() == std::vector<std::string>({evaluation, experiment}),
         "unexpected experiments: " + absl::StrJoin(fleet_.Experiments(), ", "));
  MakeBackup();

  // Startup removes what a crash left behind.
  fleet_.Revive();
  const auto exit = fleet_.TerminateServer();
  Expect(exit.ok(), "the server " + exit.ToString());
  fleet_.Revive();
  CheckArtifacts({experiment, evaluation});
  CheckBackup();
  return problems_;
}

void Scenario::DisturbWorkers(const std::string& experiment) {
  // The hold file keeps trials from ending before both workers are gone, however slow the test is.
  // One worker drains ...
  std::ofstream hold(hold_file_);
  StartWorker(0);
  Expect(
      fleet_.AwaitTrials(experiment, [](const auto& trials) { return AnyRuns(trials, 24, "w0"); }),
      "the first worker stored no checkpoint");
  fleet_.Revive();
  fleet_.TerminateWorker(0);
  // ... one is killed, so that its leases expire ...
  StartWorker(1);
  Expect(
      fleet_.AwaitTrials(experiment, [](const auto& trials) { return AnyRuns(trials, 24, "w1"); }),
      "the second worker stored no checkpoint");
  fleet_.KillWorker(1);
  std::filesystem::remove(hold_file_);
  // ... and one finishes.
  StartWorker(2);
}

std::string Scenario::Evaluate(const std::string& trial) {
  v1::EvaluateTrialRequest request;
  request.set_request_id("evaluation");
  request.set_trial(trial);
  v1::CreateExperimentResponse response;
  const grpc::Status status =
      fleet_.Call([&](v1::ExperimentService::Stub& stub, grpc::ClientContext& context) {
        return stub.EvaluateTrial(&context, request, &response);
      });
  Expect(status.ok(), "evaluating: " + status.error_message());
  return response.experiment().name();
}

void Scenario::CancelAndDelete() {
  const std::string endless = fleet_.Submit(kEndless, "endless");
  Expect(fleet_.AwaitTrials(endless, [](const auto& trials) { return AnyRuns(trials, 0, "w2"); }),
         "the endless trial did not start");
  v1::CancelTrialRequest cancel;
  cancel.set_name(fleet_.Trials(endless).front().name());
  v1::Trial cancelled;
  grpc::Status status =
      fleet_.Call([&](v1::ExperimentService::Stub& stub, grpc::ClientContext& context) {
        return stub.CancelTrial(&context, cancel, &cancelled);
      });
  Expect(status.ok() && cancelled.state() == v1::CANCELLED,
         "cancelling: " + status.error_message());
  v1::DeleteExperimentRequest request;
  request.set_name(endless);
  v1::DeleteExperimentResponse response;
  status = fleet_.Call([&](v1::ExperimentService::Stub& stub, grpc::ClientContext& context) {
    return stub.DeleteExperiment(&context, request, &response);
  });
  // NOT_FOUND means that an earlier attempt deleted it and its answer was lost.
  Expect(status.ok() || status.error_code() == grpc::StatusCode::NOT_FOUND,
         "deleting: " + status.error_message());
}

void Scenario::MakeBackup() {
  v1::BackUpRequest request;
  request.set_name("whole");
  const auto back_up = [&] {
    return fleet_.Call([&](v1::ExperimentService::Stub&, grpc::ClientContext& context) {
      const auto stub = v1::AdministrationService::NewStub(fleet_.channel());
      const auto stream = stub->BackUp(&context, request);
      v1::BackUpResponse response;
      while (stream->Read(&response)) {
      }
      return stream->Finish();
    });
  };
  grpc::Status status = back_up();
  // After a full disk, the backup is requested again once there is space.
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) status = back_up();
  // ALREADY_EXISTS means that an earlier attempt made it and its answer was lost.
  Expect(status.ok() || status.error_code() == grpc::StatusCode::ALREADY_EXISTS,
         "backing up: " + status.error_message());
}

// The complete backup exists, and nothing else.
void Scenario::CheckBackup() {
  const std::string backups = fleet_.data_directory() + "/backups";
  const auto found = platform::ListDirectory(backups);
  Expect(found.ok() && *found == std::vector<std::string>({"whole"}),
         "backups: " + (found.ok() ? absl::StrJoin(*found, ", ") : found.status().ToString()));
  server::CheckpointPlace place;
  if (server::TestsRunOnS3()) {
    place = server::CheckpointsInS3(
        server::OpenS3(fleet_.artifacts(), server::S3TestStore().value()).value());
  } else if (!fleet_.artifacts().empty()) {
    place = server::CheckpointsIn(fleet_.artifacts());
  }
  const absl::Status restored =
      server::RestoreBackup(backups + "/whole", fleet_.directory() + "/restored", place);
  Expect(restored.ok(), "restoring: " + restored.ToString());
}

void Scenario::CheckHistory(const std::string& experiment) {
  const auto events = ByTrial(fleet_.Log(experiment));
  const std::vector<v1::Trial> trials = fleet_.Trials(experiment);
  Expect(events.size() == trials.size(), "events of other trials");
  for (const v1::Trial& trial : trials) {
    Expect(trial.state() == v1::SUCCEEDED,
           absl::StrCat(trial.name(), " is ", v1::TrialState_Name(trial.state()), ": ",
                        trial.reason()));
    const auto found = events.find(trial.name());
    if (found == events.end()) continue;
    for (std::string& problem :
         Problems(trial.name(), found->second, Scripted(trial.specification()))) {
      problems_.push_back(std::move(problem));
    }
  }
}

// The disk holds the last model of each trial that the log names, and nothing else.
void Scenario::CheckArtifacts(const std::vector<std::string>& experiments) {
  std::set<std::string> expected;
  for (const std::string& experiment : experiments) {
    for (const auto& [trial, events] : ByTrial(fleet_.Log(experiment))) {
      std::vector<std::string> checkpoints;
      for (const v1::Event& event : events) {
        if (event.has_checkpoint()) checkpoints.push_back(event.checkpoint().sha256());
      }
      if (checkpoints.empty()) continue;
      const std::vector<std::string> parts = absl::StrSplit(trial, '/');
      expected.insert(
          absl::StrCat(parts[1], "/", parts[3], "/", checkpoints.back(), ".safetensors"));
    }
  }
  const bool is_elsewhere = !fleet_.artifacts().empty();
  if (is_elsewhere) expected.insert("lengthwise_store.json");
  if (is_elsewhere && !server::TestsRunOnS3()) expected.insert("lengthwise_store.lock");
  const std::filesystem::path root =
      is_elsewhere ? fleet_.artifacts() : fleet_.data_directory() + "/artifacts";
  std::set<std::string> found;
  const auto look = [&] {
    found.clear();
    if (server::TestsRunOnS3()) {
      const auto client = server::OpenS3(fleet_.artifacts(), server::S3TestStore().value()).value();
      const absl::Status listed =
          client->List("", [&](const server::S3Object& object) { found.insert(object.key); });
      return Expect(listed.ok(), "listing: " + listed.ToString());
    }
    std::error_code gone;  // deleted meanwhile
    std::filesystem::recursive_directory_iterator entry(root, gone);
    for (; !gone && entry != std::filesystem::recursive_directory_iterator();
         entry.increment(gone)) {
      if (entry->is_regular_file(gone)) {
        found.insert(entry->path().lexically_relative(root).string());
      }
    }
  };
  // The server deletes beside its other work.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  for (look(); found != expected && absl::Now() < deadline; look()) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  Compare(expected, found);
}

void Scenario::Compare(const std::set<std::string>& expected, const std::set<std::string>& found) {
  for (const std::string& file : expected) {
    Expect(found.contains(file), "missing on disk: " + file);
  }
  for (const std::string& file : found) {
    Expect(expected.contains(file), "left behind on disk: " + file);
  }
}

TEST(FailpointTest, UndisturbedScenarioReachesEveryFailpoint) {
  const std::string reached = testing::TempDir() + "/reached";
  std::filesystem::remove(reached);
  const Environment environment = {{"LENGTHWISE_FAILPOINTS_REACHED", reached}};
  Scenario scenario("undisturbed", environment, environment);
  EXPECT_THAT(scenario.Play(), IsEmpty());
  EXPECT_EQ(scenario.deaths(), 0);
  std::set<std::string> names;
  for (const Failpoint& failpoint : AllFailpoints()) {
    EXPECT_TRUE(names.insert(failpoint.name).second) << failpoint.name << " occurs twice";
  }
  EXPECT_GE(names.size(), 30U);
  const std::vector<std::string> lines =
      absl::StrSplit(*platform::ReadFile(reached), '\n', absl::SkipEmpty());
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()), names);
}

TEST(FailpointTest, InstalledServerHasNoFailpoints) {
  constexpr int64_t kAnySize = int64_t{1} << 30;
  const std::string installed = *platform::ReadFile("server/lengthwise_server", kAnySize);
  const std::string tested = *platform::ReadFile("tests/faults/server_with_failpoints", kAnySize);
  for (const Failpoint& failpoint : AllFailpoints()) {
    EXPECT_EQ(installed.find(failpoint.name), std::string::npos) << failpoint.name;
    if (failpoint.of_worker) continue;
    EXPECT_NE(tested.find(failpoint.name), std::string::npos) << failpoint.name;
  }
}

// Runs the scenario in which the failpoint performs `action` the `hit`-th time its process reaches
// it. If it is not reached that often, halves `hit` and tries again. Returns the problems found;
// never acting is one.
std::vector<std::string> PlayOne(const std::string& action, const Failpoint& failpoint, int hit,
                                 bool dies) {
  for (; hit > 0; hit /= 2) {
    const std::string name = absl::StrCat(failpoint.name, "_", action, hit);
    const std::string directory = testing::TempDir() + "/" + name;
    const std::string reached = directory + "_reached";
    std::filesystem::remove(reached);
    const Environment environment = {{"LENGTHWISE_FAILPOINTS", Only(action, failpoint.name, hit)},
                                     {"LENGTHWISE_FAILPOINTS_REACHED", reached}};
    Scenario scenario(name, failpoint.of_worker ? Environment() : environment,
                      failpoint.of_worker ? environment : Environment());
    std::vector<std::string> problems = scenario.Play();
    const std::string lines = platform::ReadFile(reached).value_or("");
    const bool acts = absl::StrContains(lines, failpoint.name + " acts\n");
    if (acts && dies && scenario.deaths() != 1) {
      problems.push_back(absl::StrCat(scenario.deaths(), " processes died instead of 1"));
    }
    for (std::string& problem : problems) problem = absl::StrCat(name, ": ", problem);
    if (!problems.empty()) return problems;
    std::filesystem::remove_all(directory);
    if (acts) return {};
  }
  return {failpoint.name + " was not reached by the process in which it should act"};
}

// Runs a scenario for each failpoint, four at a time, since they mostly wait.
void PlayAll(const std::string& action, const std::vector<Failpoint>& failpoints, int hit,
             bool dies) {
  std::atomic<size_t> next = 0;
  platform::Mutex mutex;
  std::vector<std::string> wrong ABSL_GUARDED_BY(mutex);
  std::array<std::thread, 4> players;
  for (std::thread& player : players) {
    player = std::thread([&] {
      for (size_t i = next++; i < failpoints.size(); i = next++) {
        const std::vector<std::string> problems = PlayOne(action, failpoints[i], hit, dies);
        platform::MutexLock lock(mutex);
        wrong.insert(wrong.end(), problems.begin(), problems.end());
      }
    });
  }
  for (std::thread& player : players) player.join();
  platform::MutexLock lock(mutex);
  EXPECT_THAT(wrong, IsEmpty());
}

// The hit at which the failpoint acts: 1, and in long runs also later ones.
int Hit() {
  const char* hit = std::getenv("LENGTHWISE_FAILPOINT_HIT");
  return hit == nullptr ? 1 : std::atoi(hit);
}

TEST(FailpointTest, CrashAtAnyFailpointBreaksNoPromise) {
  PlayAll("crash", AllFailpoints(), Hit(), /*dies=*/true);
}

TEST(FailpointTest, FullDiskAtAnyFailpointBreaksNoPromise) {
  std::vector<Failpoint> failpoints;
  for (const Failpoint& failpoint : AllFailpoints()) {
    if (failpoint.can_fail && !failpoint.of_worker) failpoints.push_back(failpoint);
  }
  // Uses the second hit where there is one. The first is on the way to the ready file, where a full
  // disk ends the server and the restarted one succeeds. With another place for checkpoints, its
  // keys are before that.
  const bool is_elsewhere =
      std::getenv("LENGTHWISE_TEST_SHARED_PATH") != nullptr || server::TestsRunOnS3();
  PlayAll("full", failpoints, (is_elsewhere ? 3 : 2) * Hit(), /*dies=*/false);
}

}  // namespace
}  // namespace lengthwise::faults
