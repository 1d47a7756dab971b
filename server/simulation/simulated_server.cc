#include "server/simulation/simulated_server.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "server/coordination/retention.h"

namespace lengthwise::server {

SimulatedServer::SimulatedServer(Timeline& timeline, const Weather& weather,
                                 ArtifactStore& artifacts, std::string directory, Promise& promise)
    : timeline_(timeline),
      weather_(weather),
      artifacts_(artifacts),
      directory_(std::move(directory)),
      promise_(promise) {
  Start();
}

void SimulatedServer::PutArtifact(const ArtifactId& id, const std::string& bytes) {
  const std::filesystem::path trial = std::filesystem::path(directory_) / id.experiment / id.trial;
  std::filesystem::create_directories(trial);
  std::ofstream(trial / (id.sha256 + ".safetensors")) << bytes;
}

bool SimulatedServer::DamageCheckpoint(const TrialRecord& trial) {
  if (trial.state != v1::QUEUED || trial.checkpoint_step == 0) return false;
  const auto trial_directory = std::filesystem::path(directory_) / trial.experiment_id / trial.id;
  if (!std::filesystem::exists(trial_directory)) return false;
  for (const auto& file : std::filesystem::directory_iterator(trial_directory)) {
    std::ofstream(file.path()) << "damaged";
    ++damages_;
    return true;
  }
  return false;
}

void SimulatedServer::Start() {
  const auto now = [this] { return timeline_.now(); };
  Engine::Options options;
  // Simulated trials take seconds.
  options.scheduler.min_run = absl::Seconds(2);
  // Grids are made without a resolver.
  const auto resolve =
      [](const v1::CreateExperimentRequest&) -> absl::StatusOr<specification::Grid> {
    return absl::InternalError("the extension was made for another specification");
  };
  const auto check_bytes = [](const std::string&, int64_t) { return absl::OkStatus(); };
  engine_ = std::make_unique<Engine>(options, resolve, check_bytes, storage_, artifacts_, fleet_,
                                     Clock{.steady = now, .wall = now});
  const absl::Status status = engine_->ledger.Rebuild();
  if (!status.ok()) promise_.Break(std::string(status.message()));
  promise_.Started(storage_, timeline_.now());
  promise_.CheckRebuilt(storage_, engine_->ledger.scheduler());
  ++lives_;
  Tick();
}

void SimulatedServer::Die() {
  ++deaths_;
  ++lives_;
  engine_.reset();
  storage_.Crash();
  queue_.clear();
  swept_.clear();
  timeline_.After(timeline_.Between(100, 50'000), [this] { Start(); });
}

void SimulatedServer::Tick() {
  // The command loop wakes at deadlines. Here an empty command wakes the engine as often.
  timeline_.After(timeline_.Between(300, 700), [this, life = lives_] {
    if (life != lives_) return;
    Post([](Engine&) -> Answer { return nullptr; });
    Tick();
  });
}

void SimulatedServer::Post(Command command) {
  if (engine_ == nullptr) return;
  queue_.push_back(std::move(command));
  if (std::exchange(scheduled_, true)) return;
  timeline_.After(timeline_.Between(0, 3), [this] {
    scheduled_ = false;
    if (engine_ != nullptr) ProcessGroup();
  });
}

void SimulatedServer::SweepArtifacts() {
  const auto sweeps = (*storage_.Read())->ListSweeps(0, 1000);
  for (const SweepRecord& sweep : *sweeps) {
    const absl::Status swept = Sweep(storage_, artifacts_, sweep, [] { return true; });
    if (!swept.ok()) promise_.Break(std::string(swept.message()));
    swept_.push_back(sweep.key);
  }
}

void SimulatedServer::ProcessGroup() {
  const std::vector<Command> group = std::exchange(queue_, {});
  if (absl::Status status = engine_->ledger.Begin(); !status.ok()) {
    return promise_.Break(std::string(status.message()));
  }
  for (const int64_t key : std::exchange(swept_, {})) {
    engine_->ledger.store().DeleteSweep(key).IgnoreError();
  }
  std::vector<Answer> answers;
  engine_->ledger.scheduler().Hear(timeline_.now());
  for (const Command& command : group) answers.push_back(command(*engine_));
  if (absl::Status status = engine_->ledger.Tick(); !status.ok()) {
    return promise_.Break(std::string(status.message()));
  }
  const bool dies = timeline_.Chance(weather_.server_dies);
  // A death before the commit loses the group. A death after it keeps the group but loses its
  // answers.
  if (dies && timeline_.Chance(2)) return Die();
  if (timeline_.Chance(weather_.commit_fails)) storage_.FailNextCommit();
  if (!engine_->ledger.Commit().ok()) {
    ++failed_commits_;
    if (absl::Status status = engine_->ledger.Rebuild(); !status.ok()) {
      promise_.Break(std::string(status.message()));
    }
    return promise_.CheckRebuilt(storage_, engine_->ledger.scheduler());
  }
  const Effects effects = engine_->ledger.TakeEffects();
  SweepArtifacts();
  promise_.CheckCommit(storage_, effects.trials, engine_->ledger.scheduler(), timeline_.now());
  if (const absl::Status status = storage_.writer().CleanUp().status(); !status.ok()) {
    return promise_.Break(std::string(status.message()));
  }
  if (dies) return Die();
  for (const Answer& answer : answers) {
    if (answer) answer();
  }
}

}  // namespace lengthwise::server
