#include "server/simulation/simulation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/trial_counts.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"
#include "server/storage/directory_artifact_store.h"

namespace lengthwise::server {
namespace {

constexpr int64_t kMostUnended = 40;
// Fleet size for which kMostUnended and the size of experiments are tuned. Both grow with the
// fleet.
constexpr int64_t kUsualWorkers = 50;
constexpr size_t kMostExperiments = 10;
// Simulated time limit. Trials of a hundred steps end long before.
constexpr absl::Duration kLongestEvening = absl::Hours(2);
// Events between counts of the trials that have not ended, which take longer than an event.
constexpr int64_t kEventsBetweenCounts = 50;

// Small parts of a command, so that other commands come between.
std::shared_ptr<Parts> SmallParts() { return std::make_shared<Parts>(Parts{.trials_at_once = 2}); }

}  // namespace

Simulation::Simulation(const Options& options)
    : options_(options), timeline_(options.seed), network_(timeline_, weather_) {
  auto artifacts = DirectoryArtifactStore::Open(options.directory);
  if (!artifacts.ok()) {
    promise_.Break(std::string(artifacts.status().message()));
    return;
  }
  artifacts_ = *std::move(artifacts);
  promise_.SetFleet(options.workers);
  server_ = std::make_unique<SimulatedServer>(timeline_, weather_, *artifacts_, options.directory,
                                              promise_);
  for (int i = 0; i < options.workers; ++i) {
    workers_.push_back(
        std::make_unique<SimulatedWorker>(i, timeline_, weather_, network_, *server_));
  }
  Act();
  if (options.storms) Storm();
}

void Simulation::Storm() {
  timeline_.After(timeline_.Between(60'000, 120'000), [this] {
    if (!users_act_) return;
    ++storms_;
    for (const auto& worker : workers_) {
      if (timeline_.Chance(3)) worker->EndWallTime();
    }
    Storm();
  });
}

std::string Simulation::Run() {
  while (promise_.broken().empty() && timeline_.events() < options_.events) timeline_.RunNext();
  users_act_ = false;
  weather_ = kFairWeather;
  const absl::Time evening = timeline_.now();
  while (promise_.broken().empty() && Unended() > 0) {
    for (int64_t i = 0; i < kEventsBetweenCounts && promise_.broken().empty(); ++i) {
      timeline_.RunNext();
    }
    if (timeline_.now() - evening > kLongestEvening) {
      promise_.Break(absl::StrCat(Unended(), " trials never end"));
    }
  }
  if (promise_.broken().empty()) return "";
  return absl::StrCat("seed ", options_.seed, ", event ", timeline_.events(), ": ",
                      promise_.broken());
}

std::string Simulation::Summary() const {
  const Promise::Counts& counts = promise_.counts();
  return absl::StrCat(
      timeline_.events(), " events, ", submissions_, " submissions, ", counts.successes,
      " successes, ", counts.retries, " retries, ", counts.preemptions, " preemptions, ",
      counts.splits, " splits, ", counts.expiries, " expiries, ", server_->deaths(),
      " deaths of the server, ", server_->failed_commits(), " failed commits, ", server_->damages(),
      " damaged checkpoints", options_.storms ? absl::StrCat(", ", storms_, " storms") : "");
}

int64_t Simulation::Scale() const { return std::max<int64_t>(1, options_.workers / kUsualWorkers); }

int64_t Simulation::Unended() const { return server_->store().CountUnendedTrials(); }

std::string Simulation::AnyUser() {
  const char* const users[] = {"ada", "bob", "cleo"};
  return users[timeline_.Below(3)];
}

std::vector<ExperimentRecord> Simulation::Experiments() const {
  return *server_->store().writer().ListExperiments(0, "", std::numeric_limits<int64_t>::max());
}

std::string Simulation::AnyExperiment() {
  const std::vector<ExperimentRecord> experiments = Experiments();
  if (experiments.empty()) return "";
  const int64_t any = timeline_.Below(static_cast<int64_t>(experiments.size()));
  return experiments[static_cast<size_t>(any)].id;
}

std::string Simulation::AnyTrial(const std::string& experiment) {
  StorageReader& store = server_->store().writer();
  const auto record = *store.FindExperiment(experiment);
  const auto index = static_cast<int32_t>(timeline_.Below(AllTrials(record->counts)));
  return store.ListTrials(record->key, index, {}, 1)->front().id;
}

void Simulation::Act() {
  if (!users_act_) return;
  timeline_.After(timeline_.Between(50, 1500), [this] { Act(); });
  if (timeline_.Chance(20)) Damage();
  const std::string id = AnyExperiment();
  if (Unended() < kMostUnended * Scale() && (id.empty() || timeline_.Chance(2))) return Submit();
  if (id.empty()) return;
  switch (timeline_.Below(12)) {
    case 0:
      return Cancel(id);
    case 1:
    case 2:
    case 3: {
      v1::RetryTrialsRequest request;
      request.set_name(timeline_.Chance(2) ? ExperimentName(id) : TrialName(id, AnyTrial(id)));
      request.add_states(v1::FAILED);
      if (timeline_.Chance(2)) request.add_states(v1::CANCELLED);
      return PostParts([request, user = AnyUser(), parts = SmallParts()](Engine& engine) {
        const auto response = engine.experiments.RetryTrials(request, user, *parts);
        return !response.ok() || response->has_value();
      });
    }
    case 4:
      return Extend(id);
    default:
      if (Experiments().size() > kMostExperiments) Delete(id);
  }
}

void Simulation::Submit() {
  ++submissions_;
  Submission submission;
  const std::string name(1, static_cast<char>('a' + timeline_.Below(4)));
  submission.Take(MakeGrid(timeline_, name, 1 + timeline_.Below(3), 6 * Scale()));
  ExperimentRecord& record = submission.experiment;
  record.owner = AnyUser();
  record.request_id = absl::StrCat("request ", ++requests_);
  record.request_fingerprint = record.request_id;
  record.priority = static_cast<int32_t>(timeline_.Chance(2) ? timeline_.Below(3) : 0);
  record.create_time = timeline_.now();
  const auto post = [this, submission] {
    server_->Post([this, submission](Engine& engine) -> SimulatedServer::Answer {
      // It has no files, so it takes one part.
      auto created = submission;
      const auto response = engine.submissions.Create(created);
      // A request whose experiment was deleted does not create it again.
      if (!response.ok() && !absl::IsFailedPrecondition(response.status())) {
        promise_.Break(std::string(response.status().message()));
      }
      return [this, request = submission.experiment.request_id, response] {
        if (response.ok()) {
          promise_.Created(request, *ParseExperimentName((*response)->experiment().name()));
        }
      };
    });
  };
  post();
  // A user without an answer repeats the request, at once or much later.
  if (timeline_.Chance(4)) post();
  if (timeline_.Chance(4)) timeline_.After(timeline_.Between(1'000, 600'000), post);
}

void Simulation::Extend(const std::string& id) {
  if (Unended() >= kMostUnended) return;
  server_->Post([this, id](Engine& engine) -> SimulatedServer::Answer {
    StorageReader& store = server_->store().writer();
    const auto record = *store.FindExperiment(id);
    if (!record.has_value()) return nullptr;
    Extension extension;
    extension.experiment = id;
    extension.base = record->specification;
    extension.specification = record->specification;
    const PackRecord pack = store.ListPacks(record->key)->front();
    auto shared = std::make_shared<specification::GridPack>();
    shared->key = pack.pack_key;
    shared->specification.ParseFromString(pack.specification);
    extension.added = ToNewTrials(
        {MoreOf(timeline_, std::move(shared), static_cast<uint64_t>(10'000 + ++requests_))});
    const auto response = engine.submissions.Extend(std::move(extension));
    if (!response.ok()) promise_.Break(std::string(response.status().message()));
    return nullptr;
  });
}

void Simulation::Cancel(const std::string& id) {
  const std::string user = AnyUser();
  if (timeline_.Chance(3)) {
    v1::CancelExperimentRequest request;
    request.set_name(ExperimentName(id));
    return PostParts([request, user, parts = SmallParts()](Engine& engine) {
      const auto response = engine.experiments.Cancel(request, user, *parts);
      return !response.ok() || response->has_value();
    });
  }
  v1::CancelTrialRequest request;
  request.set_name(TrialName(id, AnyTrial(id)));
  server_->Post([request, user](Engine& engine) -> SimulatedServer::Answer {
    engine.experiments.CancelTrial(request, user).status().IgnoreError();
    return nullptr;
  });
}

void Simulation::PostParts(const std::function<bool(Engine&)>& part) {
  server_->Post([this, part](Engine& engine) -> SimulatedServer::Answer {
    if (part(engine)) return nullptr;
    return [this, part] { PostParts(part); };
  });
}

void Simulation::Damage() {
  for (const TrialRecord& trial : server_->store().UnendedTrials()) {
    if (server_->DamageCheckpoint(trial)) return;
  }
}

void Simulation::Delete(const std::string& id) {
  server_->Post([this, id](Engine& engine) -> SimulatedServer::Answer {
    v1::DeleteExperimentRequest request;
    request.set_name(ExperimentName(id));
    const absl::Status status = engine.experiments.Delete(request).status();
    if (status.ok()) {
      ++deletions_;
      promise_.Deleting(id);
    } else if (absl::IsFailedPrecondition(status)) {
      // It has unfinished trials, and must not be lost.
      ++refused_deletions_;
    } else if (!absl::IsNotFound(status)) {  // another command may have deleted it meanwhile
      promise_.Break(std::string(status.message()));
    }
    return nullptr;
  });
}

}  // namespace lengthwise::server
