#include "server/simulation/simulated_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "platform/version.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

constexpr int32_t kMaxPackSize = 8;
constexpr absl::Duration kAnswerTimeout = absl::Seconds(3);

}  // namespace

SimulatedWorker::SimulatedWorker(int number, Timeline& timeline, const Weather& weather,
                                 Network& network, SimulatedServer& server)
    : number_(number),
      principal_(absl::StrCat("principal-", number % 3)),
      memory_(number % 2 == 0 ? 4 : 8),
      timeline_(timeline),
      weather_(weather),
      network_(network),
      server_(server) {
  Start();
}

template <typename Response>
void SimulatedWorker::Call(std::function<absl::StatusOr<Response>(Engine&)> command,
                           std::function<void(const absl::StatusOr<Response>&)> take) {
  const auto reachable = [this] { return timeline_.now() >= cut_off_until_; };
  network_.Send(reachable(), [this, reachable, life = life_, command = std::move(command),
                              take = std::move(take)] {
    server_.Post([this, reachable, life, command, take](Engine& engine) -> SimulatedServer::Answer {
      return [this, reachable, life, take, response = command(engine)] {
        network_.Send(reachable(), [this, life, take, response] {
          if (life == life_) take(response);
        });
      };
    });
  });
}

void SimulatedWorker::Start() {
  ++life_;
  // Two lives pass with a process, and every second process has the name of the one before.
  id_ = absl::StrCat("n", number_, "-cpu-", life_ / 4);
  calls_ = 0;
  newest_token_ = 0;
  released_.clear();
  leaving_ = false;
  DropLease();
  Beat();
  Work();
}

void SimulatedWorker::DropLease() {
  lease_.reset();
  trials_.clear();
  draining_.clear();
}

bool SimulatedWorker::MeetsItsEnd() {
  const bool killed = timeline_.Chance(weather_.worker_dies);
  if (timeline_.Chance(weather_.worker_drains)) {
    leaving_ = true;
    Drain("the worker was asked to stop");
  }
  if (timeline_.Chance(weather_.partition)) {
    cut_off_until_ = timeline_.now() + timeline_.Between(500, 60'000);
  }
  const bool left = leaving_ && !lease_.has_value();
  if (!killed && !left) return false;
  if (!killed) Synchronize();
  End();
  return true;
}

void SimulatedWorker::End() {
  ++life_;
  DropLease();
  timeline_.After(timeline_.Between(100, 20'000), [this] { Start(); });
}

void SimulatedWorker::EndWallTime() {
  leaving_ = true;
  Drain("the worker was asked to stop");
  timeline_.After(timeline_.Between(1'000, 30'000), [this, life = life_] {
    if (life == life_) End();
  });
}

void SimulatedWorker::Beat() {
  if (MeetsItsEnd()) return;
  Synchronize();
  if (timeline_.Chance(20)) Intrude();
  const int64_t interval = absl::ToInt64Milliseconds(heartbeat_interval_);
  timeline_.After(timeline_.Between(9 * interval / 10, 11 * interval / 10), [this, life = life_] {
    if (life == life_) Beat();
  });
}

void SimulatedWorker::SetHeartbeatInterval(const google::protobuf::Duration& interval) {
  heartbeat_interval_ = absl::Seconds(interval.seconds()) + absl::Nanoseconds(interval.nanos());
  // A longer interval would delay a cancellation beyond two seconds.
  if (heartbeat_interval_ < absl::Milliseconds(100) ||
      heartbeat_interval_ > absl::Milliseconds(1750)) {
    server_.promise().Break(
        absl::StrCat("workers are to report every ", absl::FormatDuration(heartbeat_interval_)));
  }
}

void SimulatedWorker::Intrude() {
  if (!lease_.has_value()) return;
  const std::string guess = absl::StrCat("lease-", lease_->fencing_token());
  const std::string other = absl::StrCat("principal-", number_ % 3 + 1);
  v1::StreamEventsRequest events;
  events.set_fencing_token(lease_->fencing_token());
  v1::Event& event = *events.add_events();
  event.set_trial(trials_[0].leased.trial());
  event.set_attempt(trials_[0].leased.attempt());
  event.set_sequence(trials_[0].sequence + 1);
  event.mutable_outcome()->set_kind(v1::Outcome::FAILED_PERMANENTLY);
  v1::SynchronizeRequest call;
  call.mutable_worker()->set_worker_id("intruder");
  call.mutable_worker()->set_max_pack_size(1);
  call.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  call.set_number(1);
  call.set_stopping(true);
  call.add_leases()->set_fencing_token(lease_->fencing_token());
  call.add_released()->set_fencing_token(lease_->fencing_token());
  const auto intrude = [this, events, call, worker = id_](Engine& engine, const std::string& id,
                                                          const std::string& principal) {
    v1::StreamEventsRequest write = events;
    write.set_lease_id(id);
    const auto stored = engine.events.Store(write, principal);
    if (!stored.ok() || stored->refusal() != v1::StreamEventsResponse::STALE_LEASE) {
      server_.promise().Break(absl::StrCat(principal, " wrote with ", id, ", another's lease"));
    }
    v1::SynchronizeRequest give_back = call;
    give_back.mutable_leases(0)->set_lease_id(id);
    give_back.mutable_released(0)->set_lease_id(id);
    const Scheduler& scheduler = engine.ledger.scheduler();
    const Token token = call.leases(0).fencing_token();
    const std::vector<TrialKey> before = scheduler.LiveTrials(worker, token);
    const absl::Status heard = engine.leases.Hear(give_back, principal);
    const auto response = engine.leases.Answer(give_back, principal, /*grants=*/false);
    if (!heard.ok() || !response.ok() || !response->leases(0).lost() ||
        scheduler.LiveTrials(worker, token) != before) {
      server_.promise().Break(absl::StrCat(principal, " used ", id, ", another's lease"));
    }
    // The name of a worker is its principal's while it is alive.
    give_back.mutable_worker()->set_worker_id(worker);
    if (principal != principal_ && scheduler.IsAlive(worker, timeline_.now()) &&
        !absl::IsPermissionDenied(engine.leases.Hear(give_back, principal))) {
      server_.promise().Break(absl::StrCat(principal, " spoke for ", worker));
    }
  };
  Call<v1::SynchronizeResponse>(
      [this, intrude, guess, other,
       id = lease_->lease_id()](Engine& engine) -> absl::StatusOr<v1::SynchronizeResponse> {
        intrude(engine, id, other);
        intrude(engine, guess, other);
        intrude(engine, guess, principal_);
        return v1::SynchronizeResponse();
      },
      [](const auto&) {});
}

void SimulatedWorker::Synchronize() {
  v1::SynchronizeRequest request;
  request.mutable_worker()->set_worker_id(id_);
  request.mutable_worker()->set_max_pack_size(kMaxPackSize);
  request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
  request.set_session(absl::StrCat("process ", number_, " ", life_));
  request.set_number(++calls_);
  request.set_wants_lease(!lease_.has_value() && !leaving_);
  request.set_stopping(!lease_.has_value() && leaving_);
  request.mutable_released()->Assign(released_.begin(), released_.end());
  if (lease_.has_value()) {
    v1::HeldLease& held = *request.add_leases();
    held.set_lease_id(lease_->lease_id());
    held.set_fencing_token(lease_->fencing_token());
    if (timeline_.Chance(20)) {
      const int64_t need = trials_[0].leased.specification().training().batch_size();
      v1::PackCapacity& capacity = *request.add_capacities();
      capacity.set_shape(lease_->shape());
      capacity.set_max_pack_size(static_cast<int32_t>(std::max<int64_t>(1, memory_ / need)));
    }
  }
  Call<v1::SynchronizeResponse>(
      [this, request](Engine& engine) -> absl::StatusOr<v1::SynchronizeResponse> {
        RETURN_IF_ERROR(engine.leases.Hear(request, principal_));
        for (const v1::HeldLease& held : request.leases()) {
          server_.promise().Listed(held.fencing_token());
        }
        if (!request.wants_lease()) return engine.leases.Answer(request, principal_, false);
        const auto choice = server_.promise().ChoiceOf(server_.store(), timeline_.now());
        const auto response = engine.leases.Answer(request, principal_, true);
        if (response.ok()) {
          server_.promise().CheckLease(server_.store(), choice, request.session(), *response);
        }
        return response;
      },
      [this, request](const absl::StatusOr<v1::SynchronizeResponse>& response) {
        if (!response.ok()) return;
        SetHeartbeatInterval(response->heartbeat_interval());
        for (const v1::ReleasedLease& told : request.released()) {
          std::erase_if(released_, [&](const v1::ReleasedLease& lease) {
            return lease.fencing_token() == told.fencing_token();
          });
        }
        Apply(*response);
        if (response->has_lease()) Take(response->lease());
      });
}

void SimulatedWorker::Take(const v1::Lease& lease) {
  // A second or late answer. The server ends the lease, or it expires.
  if (lease.fencing_token() <= newest_token_ || lease_.has_value() || leaving_) return;
  newest_token_ = lease.fencing_token();
  lease_ = lease;
  for (const v1::LeasedTrial& leased : lease_->trials()) {
    RunningTrial& trial = trials_.emplace_back();
    trial.leased = leased;
    trial.nature = NatureOf(ParseTrialName(leased.trial())->trial);
    trial.step = leased.checkpoint_step();
    trial.checkpoint_step = leased.checkpoint_step();
  }
  const int64_t needed = static_cast<int64_t>(trials_.size()) *
                         trials_[0].leased.specification().training().batch_size();
  if (needed <= memory_) return;
  for (RunningTrial& trial : trials_) {
    EmitOutcome(trial, v1::Outcome::OUT_OF_MEMORY, absl::StrCat(needed, " units are wanted"));
  }
}

void SimulatedWorker::Apply(const v1::SynchronizeResponse& response) {
  for (const v1::SynchronizeResponse::LeaseStatus& directive : response.leases()) {
    if (!lease_.has_value() || directive.lease_id() != lease_->lease_id()) continue;
    if (directive.lost()) return DropLease();
    for (const std::string& name : directive.cancelled_trials()) {
      RunningTrial* trial = Find(name);
      if (trial == nullptr) continue;
      trial->ended = true;
      trial->unsent.clear();
    }
    if (directive.preempted() && draining_.empty()) {
      if (directive.reason().empty()) server_.promise().Break("preempted for no reason");
      Drain(directive.reason());
    }
  }
}

SimulatedWorker::RunningTrial* SimulatedWorker::Find(const std::string& name) {
  for (RunningTrial& trial : trials_) {
    if (trial.leased.trial() == name) return &trial;
  }
  return nullptr;
}

void SimulatedWorker::Work() {
  if (lease_.has_value()) {
    const bool deadly = std::any_of(trials_.begin(), trials_.end(), [](const RunningTrial& trial) {
      return trial.nature == Nature::kEndsItsWorker && !trial.ended;
    });
    if (deadly && timeline_.Chance(4)) return End();
    for (RunningTrial& trial : trials_) {
      if (draining_.empty() && !trial.ended) Advance(trial);
      Send(trial);
    }
    const bool ended = std::all_of(trials_.begin(), trials_.end(),
                                   [](const RunningTrial& trial) { return trial.ended; });
    if (ended && IsSent()) {
      DropLease();
      if (!leaving_) Synchronize();
    } else if (!draining_.empty() && (IsSent() || timeline_.now() > drain_end_)) {
      GiveBack();
    }
  }
  timeline_.After(timeline_.Between(100, 700), [this, life = life_] {
    if (life == life_) Work();
  });
}

void SimulatedWorker::Advance(RunningTrial& trial) {
  const v1::Training& training = trial.leased.specification().training();
  if (trial.step < training.steps()) {
    if (trial.nature == Nature::kFailsNowAndThen && timeline_.Chance(12)) {
      const char* const reasons[] = {"the disk is full", "the GPU fell off the bus", "timeout"};
      return EmitOutcome(trial, v1::Outcome::FAILED_TEMPORARILY, reasons[timeline_.Below(3)]);
    }
    trial.step += kStepsBetweenPoints;
    v1::Event event;
    v1::TrainingPoints& points = *event.mutable_training_points();
    points.add_steps(trial.step);
    points.add_losses(1);
    points.add_accuracies(0);
    points.add_gradient_norms(1);
    points.add_lengths(7);
    Emit(trial, std::move(event));
    if (trial.nature == Nature::kFailsAlike) {
      return EmitOutcome(trial, v1::Outcome::FAILED_TEMPORARILY,
                         absl::StrCat("index ", timeline_.Below(1000), " is out of range"));
    }
    const int64_t every = training.checkpoint_every_steps();
    if (every > 0 && trial.step % every == 0) EmitCheckpoint(trial);
    return;
  }
  if (trial.nature == Nature::kDiverges) {
    return EmitOutcome(trial, v1::Outcome::FAILED_PERMANENTLY, "the loss was nan");
  }
  EmitCheckpoint(trial);
  EmitOutcome(trial, v1::Outcome::COMPLETED, "");
}

void SimulatedWorker::Emit(RunningTrial& trial, v1::Event event) {
  event.set_trial(trial.leased.trial());
  event.set_attempt(trial.leased.attempt());
  event.set_sequence(++trial.sequence);
  event.set_step(trial.step);
  event.mutable_time()->set_seconds(absl::ToUnixSeconds(timeline_.now()));
  trial.unsent.push_back(std::move(event));
}

void SimulatedWorker::EmitOutcome(RunningTrial& trial, v1::Outcome::Kind kind,
                                  const std::string& reason) {
  v1::Event event;
  event.mutable_outcome()->set_kind(kind);
  event.mutable_outcome()->set_reason(reason);
  Emit(trial, std::move(event));
  trial.ended = true;
}

void SimulatedWorker::EmitCheckpoint(RunningTrial& trial) {
  if (trial.checkpoint_step == trial.step) return;
  // The same bytes at every step, so that a trial needs one file.
  const std::string bytes = absl::StrCat("model of ", trial.leased.trial());
  const TrialPath path = *ParseTrialName(trial.leased.trial());
  const ArtifactId id = {
      .experiment = path.experiment, .trial = path.trial, .sha256 = platform::Sha256Hex(bytes)};
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (trial.checkpoint_step == 0) server_.PutArtifact(id, bytes);
  v1::Event event;
  event.mutable_checkpoint()->set_sha256(id.sha256);
  event.mutable_checkpoint()->set_size_bytes(size);
  Emit(trial, std::move(event));
  trial.checkpoint_step = trial.step;
}

void SimulatedWorker::Send(RunningTrial& trial) {
  constexpr size_t kMaxBatch = 6;
  if (trial.unsent.empty() || timeline_.now() - trial.sent < kAnswerTimeout) return;
  trial.sent = timeline_.now();
  v1::StreamEventsRequest request;
  request.set_lease_id(lease_->lease_id());
  request.set_fencing_token(lease_->fencing_token());
  for (size_t i = 0; i < std::min(kMaxBatch, trial.unsent.size()); ++i) {
    *request.add_events() = trial.unsent[i];
  }
  Call<v1::StreamEventsResponse>(
      [this, request](Engine& engine) {
        StorageReader& store = server_.store().writer();
        const TrialPath path = *ParseTrialName(request.events(0).trial());
        const auto before = *store.FindTrial(path.experiment, path.trial);
        const int64_t last =
            before.has_value() ? *store.LastSequence(before->key, request.events(0).attempt()) : 0;
        const auto response = engine.events.Store(request, principal_);
        if (response.ok()) server_.promise().CheckEvents(before, last, request, *response);
        return response;
      },
      [this, token = lease_->fencing_token(),
       name = trial.leased.trial()](const absl::StatusOr<v1::StreamEventsResponse>& response) {
        const bool current = lease_.has_value() && lease_->fencing_token() == token;
        RunningTrial* sender = current ? Find(name) : nullptr;
        if (!response.ok() || sender == nullptr) return;
        sender->sent = absl::InfinitePast();
        if (response->refusal() == v1::StreamEventsResponse::STALE_LEASE) {
          sender->ended = true;
          sender->unsent.clear();
          return;
        }
        const int64_t acknowledged = response->acknowledged_sequence();
        server_.promise().Acknowledge(name, sender->leased.attempt(), acknowledged);
        while (!sender->unsent.empty() && sender->unsent.front().sequence() <= acknowledged) {
          sender->unsent.pop_front();
        }
      });
}

bool SimulatedWorker::IsSent() const {
  return std::all_of(trials_.begin(), trials_.end(),
                     [](const RunningTrial& trial) { return trial.unsent.empty(); });
}

void SimulatedWorker::Drain(const std::string& reason) {
  if (!lease_.has_value() || !draining_.empty()) return;
  draining_ = reason;
  drain_end_ = timeline_.now() + absl::Seconds(10);
  for (RunningTrial& trial : trials_) {
    const bool keeps = trial.leased.specification().training().checkpoint_every_steps() > 0;
    if (!trial.ended && keeps) EmitCheckpoint(trial);
  }
}

void SimulatedWorker::GiveBack() {
  v1::ReleasedLease& released = released_.emplace_back();
  released.set_lease_id(lease_->lease_id());
  released.set_fencing_token(lease_->fencing_token());
  released.set_reason(draining_);
  DropLease();
  // A process that leaves says so once, at its end. If that is lost, the lease must expire.
  if (!leaving_) Synchronize();
}

}  // namespace lengthwise::server
