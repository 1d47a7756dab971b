#include "tests/faults/kill_loop.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "tests/faults/fleet.h"
#include "tests/faults/history.h"

namespace lengthwise::faults {
namespace {

// Eight trials of 150 steps. A real worker trains one in about a second; a scripted one takes its
// configured milliseconds for each step.
constexpr char kSpecification[] = R"(
name: killed
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: [sin_cos, {name: relative, randomized: true, max_position: 64}]
learning_rates: [0.001, 0.0003]
seeds: [1, 2]
training: {steps: 150, batch_size: 8, lengths: {min: 1, max: 10}, report_every_steps: 3,
           checkpoint_every_steps: 20}
evaluation: {lengths: [5, 10, 20], sequences: 16, every_steps: 40}
)";

constexpr int kWorkers = 3;
// Experiments in flight at a time: enough trials for all workers.
constexpr size_t kExperimentsAtOnce = 2;

// Watches an experiment from submission to end. Resumes its position after each death of the
// server.
class LiveWatcher {
 public:
  LiveWatcher(const std::string& address, std::string experiment)
      : stub_(v1::ExperimentService::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        experiment_(std::move(experiment)),
        thread_([this] { Watch(); }) {}
  ~LiveWatcher() { Join(); }

  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Call after Join.
  const std::vector<int64_t>& positions() const { return positions_; }
  const grpc::Status& status() const { return status_; }

 private:
  void Watch() {
    const auto deadline = std::chrono::system_clock::now() + std::chrono::minutes(30);
    int64_t next_position = 0;
    do {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      context.set_wait_for_ready(true);
      v1::WatchExperimentRequest request;
      request.set_name(experiment_);
      request.set_start_position(next_position);
      const auto stream = stub_->WatchExperiment(&context, request);
      v1::WatchExperimentResponse response;
      while (stream->Read(&response)) {
        for (const v1::Event& event : response.events()) positions_.push_back(event.position());
        next_position = response.next_position();
      }
      status_ = stream->Finish();
    } while (status_.error_code() == grpc::StatusCode::UNAVAILABLE);
  }

  const std::unique_ptr<v1::ExperimentService::Stub> stub_;
  const std::string experiment_;
  std::vector<int64_t> positions_;
  grpc::Status status_;
  std::thread thread_;
};

// Measurements of an undisturbed run, by trial id.
std::map<std::string, Measurements> MeasureUndisturbed(const KillLoopOptions& options) {
  Fleet fleet({.directory = options.directory + "/undisturbed",
               .server_program = "server/lengthwise_server",
               .worker_command = options.worker_command,
               .lease_duration = absl::Minutes(1)});
  fleet.StartServer();
  const std::string experiment = fleet.Submit(kSpecification, "undisturbed");
  fleet.StartWorker(0);
  fleet.AwaitTrials(experiment, AllEnded);
  std::map<std::string, Measurements> expected;
  for (const auto& [trial, events] : ByTrial(fleet.Log(experiment))) {
    expected[trial.substr(trial.rfind('/') + 1)] = Measured(events);
  }
  return expected;
}

class KillLoop {
 public:
  explicit KillLoop(const KillLoopOptions& options)
      : options_(options),
        fleet_({.directory = options.directory + "/disturbed",
                .server_program = "server/lengthwise_server",
                .worker_command = options.worker_command,
                .lease_duration = absl::Milliseconds(600)}),
        random_(options.seed) {}

  KillLoopReport Run() {
    if (!options_.scripted) expected_ = MeasureUndisturbed(options_);
    const absl::Time start = absl::Now();
    fleet_.StartServer();
    for (int i = 0; i < kWorkers; ++i) fleet_.StartWorker(i);
    for (int kill = 0; kill < options_.kills; ++kill) {
      SubmitMore();
      std::uniform_real_distribution<double> part(0, 1);
      fleet_.Revive(options_.longest_pause * part(random_));
      Kill(std::uniform_int_distribution<int>(0, kWorkers)(random_));
    }
    for (const std::string& experiment : submitted_) {
      if (!fleet_.AwaitTrials(experiment, AllEnded, absl::Minutes(5))) {
        report_.problems.push_back(experiment + " did not end");
      }
    }
    report_.duration = absl::Now() - start;
    if (fleet_.deaths() > 0) {
      report_.problems.push_back(absl::StrCat(fleet_.deaths(), " processes died on their own"));
    }
    for (const std::string& experiment : submitted_) Check(experiment);
    report_.experiments = static_cast<int>(submitted_.size());
    return std::move(report_);
  }

 private:
  void SubmitMore() {
    if (submitted_.size() >= kExperimentsAtOnce &&
        !AllEnded(fleet_.Trials(submitted_[submitted_.size() - kExperimentsAtOnce]))) {
      return;
    }
    submitted_.push_back(
        fleet_.Submit(kSpecification, absl::StrCat("kill-loop-", submitted_.size())));
    watchers_[submitted_.back()] =
        std::make_unique<LiveWatcher>(fleet_.address(), submitted_.back());
  }

  void Kill(int victim) {
    if (victim == kWorkers) {
      ++report_.server_kills;
      fleet_.KillServer();
      fleet_.StartServer();
    } else {
      ++report_.worker_kills;
      fleet_.KillWorker(victim);
      fleet_.StartWorker(victim);
    }
  }

  void Check(const std::string& experiment) {
    const std::vector<v1::Event> log = fleet_.Log(experiment);
    report_.events += static_cast<int64_t>(log.size());
    const auto by_trial = ByTrial(log);
    const std::vector<v1::Trial> trials = fleet_.Trials(experiment);
    report_.trials += static_cast<int64_t>(trials.size());
    for (const v1::Trial& trial : trials) {
      report_.repeated_attempts += trial.attempt() - 1;
      const auto events = by_trial.find(trial.name());
      if (events == by_trial.end()) {
        report_.problems.push_back(trial.name() + " has no events");
        continue;
      }
      for (const v1::Event& event : events->second) {
        report_.resumed_from_checkpoint += event.state_change().resumed_from_step() > 0;
      }
      const Measurements expected =
          options_.scripted ? Scripted(trial.specification())
                            : expected_[trial.name().substr(trial.name().rfind('/') + 1)];
      for (std::string& problem : Problems(trial.name(), events->second, expected)) {
        report_.problems.push_back(std::move(problem));
      }
    }
    CheckWatcher(experiment, log);
  }

  // A watcher that was there from the start must have seen every event of the log, once and in
  // order.
  void CheckWatcher(const std::string& experiment, const std::vector<v1::Event>& log) {
    LiveWatcher& watcher = *watchers_[experiment];
    watcher.Join();
    const std::vector<int64_t>& seen = watcher.positions();
    if (!watcher.status().ok()) {
      report_.problems.push_back(
          absl::StrCat(experiment, ": watching ended with ", watcher.status().error_message()));
    }
    for (size_t i = 1; i < seen.size(); ++i) {
      if (seen[i] <= seen[i - 1]) {
        report_.problems.push_back(
            absl::StrCat(experiment, ": the watcher saw ", seen[i], " after ", seen[i - 1]));
      }
    }
    const std::set<int64_t> known(seen.begin(), seen.end());
    for (const v1::Event& event : log) {
      if (!known.contains(event.position())) {
        report_.problems.push_back(
            absl::StrCat(experiment, ": the watcher missed event ", event.position()));
      }
    }
  }

  const KillLoopOptions options_;
  Fleet fleet_;
  std::mt19937_64 random_;
  std::map<std::string, Measurements> expected_;  // by trial id; empty if scripted
  std::vector<std::string> submitted_;
  std::map<std::string, std::unique_ptr<LiveWatcher>> watchers_;
  KillLoopReport report_;
};

}  // namespace

void ChooseWorkers(bool real, KillLoopOptions& options) {
  options.scripted = !real;
  if (real) {
    options.worker_command = {"worker/lengthwise_worker", "--device", "cpu", "--threads", "1"};
    // A real worker needs a second before it trains.
    options.longest_pause = absl::Milliseconds(1500);
  } else {
    options.worker_command = {"tests/faults/scripted_worker", "--step_microseconds", "3000"};
  }
}

KillLoopReport RunKillLoop(const KillLoopOptions& options) { return KillLoop(options).Run(); }

}  // namespace lengthwise::faults
