#include "server/simulation/promise.h"

#include <algorithm>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/timestamps.h"
#include "proto/trial_counts.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"
#include "server/simulation/simulated_trial.h"

namespace lengthwise::server {
namespace {

constexpr int32_t kMaxFailures = 3;
constexpr int32_t kMaxPreemptions = 3;
constexpr int32_t kMaxLosses = 3;
// After a start of the server with leases: ten lease durations.
constexpr absl::Duration kUnsettled = absl::Minutes(5);
constexpr int32_t kHighestPriority = 2;  // highest priority of the simulated users

bool IsActor(absl::string_view actor) {
  return actor == "scheduler" || (absl::StartsWith(actor, "user ") && actor.size() > 5) ||
         (absl::StartsWith(actor, "worker ") && actor.size() > 7);
}

bool MayChange(v1::TrialState from, v1::TrialState to) {
  if (from == v1::QUEUED) return to == v1::RUNNING || to == v1::CANCELLED;
  if (from == v1::RUNNING) return to != v1::RUNNING && to != v1::TRIAL_STATE_UNSPECIFIED;
  // A trial that succeeded keeps its result for good.
  return from != v1::SUCCEEDED && to == v1::QUEUED;
}

// True if the scheduler has the trial in the lease that the store names.
bool HasLease(const Scheduler& scheduler, const TrialRecord& trial) {
  return absl::c_linear_search(scheduler.LiveTrials(trial.worker, trial.token), trial.key);
}

}  // namespace

void Promise::Break(std::string what) {
  if (broken_.empty()) broken_ = std::move(what);
}

void Promise::CheckCommit(SimulatedStorage& store,
                          const absl::btree_map<std::string, absl::btree_set<int64_t>>& trials,
                          Scheduler& scheduler, absl::Time now) {
  if (trials.empty()) return;
  const bool full = ++commits_ % full_check_every_ == 0;
  for (const auto& [experiment, keys] : trials) {
    for (const int64_t key : keys) {
      const auto trial = *store.writer().FindTrial(key);
      if (trial.has_value()) CheckTrial(store, *trial, scheduler, now);
    }
    if (full) CheckExperiment(store, experiment);
  }
  if (!full) return;
  if (scheduler.queued() + scheduler.running() != store.CountUnendedTrials()) {
    Break("the scheduler lost or invented a trial");
  }
  if (const absl::Status status = scheduler.CheckInvariants(); !status.ok()) {
    Break(std::string(status.message()));
  }
}

void Promise::CheckTrial(SimulatedStorage& store, const TrialRecord& trial, Scheduler& scheduler,
                         absl::Time now) {
  Known& known = known_[trial.key];
  for (const EventRecord& record : store.Events(trial.key, known.position + 1)) {
    known.position = record.position;
    if (record.kind == v1::Event::kCheckpoint) known.losses = 0;
    if (record.kind != v1::Event::kStateChange) continue;
    const auto event = ToEvent(record, trial.experiment_id, trial.id, store.writer().name());
    if (!event.ok()) return Break(std::string(event.status().message()));
    CheckChange(store, trial, *event, known);
  }
  if (known.position == 0 || known.state != trial.state) {
    Break(absl::StrCat(trial.id, " changed without an event"));
  }
  if (trial.reason.empty()) Break(absl::StrCat(trial.id, " has no reason for its state"));
  if (trial.state == v1::RUNNING) {
    const auto lease = store.FindLease(trial.token);
    if (!lease.has_value() || lease->worker != trial.worker) {
      Break(absl::StrCat(trial.id, " runs without a lease"));
    }
    if (!HasLease(scheduler, trial)) {
      Break(absl::StrCat(trial.id, " has another lease in the scheduler"));
    }
  }
  if (trial.state == v1::QUEUED && scheduler.WhyWaiting(trial.key, now).empty()) {
    Break(absl::StrCat("there is no reason why ", trial.id, " waits"));
  }
  if (trial.state == v1::SUCCEEDED) CheckHistory(store, trial);
}

void Promise::CheckChange(SimulatedStorage& store, const TrialRecord& trial, const v1::Event& event,
                          Known& known) {
  const v1::StateChange& change = event.state_change();
  const std::string what =
      absl::StrCat(trial.experiment_id, "/", trial.id, ": ", v1::TrialState_Name(change.from()),
                   " -> ", v1::TrialState_Name(change.to()), " (", change.reason(), ")");
  if (change.from() != known.state) Break(what + " from a state that was not");
  if (!MayChange(change.from(), change.to())) Break(what + " cannot be");
  if (change.reason().empty() || !IsActor(change.actor()))
    Break(what + " without an actor or a reason");
  if (change.to() == v1::RUNNING) {
    if (event.attempt() != known.attempt + 1) Break(what + ": attempts are miscounted");
    known.attempt = event.attempt();
    known.worker = change.worker();
    if (known.losses >= kMaxLosses - 1 && trial.state == v1::RUNNING) {
      ++counts_.alone;
      if (store.FindLease(trial.token)->size != 1) Break(what + " with others");
    }
  }
  if (absl::StrContains(change.reason(), " expired after ") &&
      !absl::StrContains(change.reason(), "being preempted") &&
      ToTime(event.time()) >= losses_count_from_) {
    const bool condemned = change.to() == v1::FAILED;
    if (condemned != (++known.losses == kMaxLosses)) {
      Break(absl::StrCat(what, " after ", known.losses, " lost workers"));
    }
    counts_.condemned += condemned ? 1 : 0;
  }
  if (HasEnded(change.from())) {
    if (!absl::StartsWith(change.actor(), "user ")) Break(what + " without a user's request");
    known.failures = 0;
    known.preemptions = 0;
    known.losses = 0;
    ++counts_.retries;
  }
  if (change.from() == v1::RUNNING && change.to() == v1::QUEUED) {
    const bool failed = absl::StrContains(change.reason(), " failed: ");
    known.failures += failed ? 1 : 0;
    // A failure that repeats identically is not tried a third time, unless it may be the machine's.
    const bool again = NatureOf(trial.id) == Nature::kFailsAlike && known.failed_on != known.worker;
    if (failed && known.failures > (again ? 1 : kMaxFailures - 1)) Break(what + " too often");
    if (failed) known.failed_on = known.worker;
    counts_.splits += absl::StrContains(change.reason(), "is too small for the pack") ? 1 : 0;
    counts_.expiries += absl::StrContains(change.reason(), " expired after ") ? 1 : 0;
    if (change.actor() == "scheduler" && absl::StrContains(change.reason(), "preempted for")) {
      ++counts_.preemptions;
      if (++known.preemptions > kMaxPreemptions) Break(what + " too often");
      const int32_t priority = (*store.writer().FindExperiment(trial.experiment_id))->priority;
      bool higher = false;
      for (int32_t other = priority + 1; other <= kHighestPriority; ++other) {
        higher |= absl::StrContains(change.reason(), absl::StrCat("for priority ", other, ","));
      }
      if (!higher) Break(what + " for no higher priority");
      if (!absl::StrContains(change.reason(), absl::StrCat("goes before ", priority, ":"))) {
        Break(what + " at another priority");
      }
    }
  }
  known.state = change.to();
}

void Promise::CheckHistory(SimulatedStorage& store, const TrialRecord& trial) {
  ++counts_.successes;
  const std::string what = absl::StrCat(trial.experiment_id, "/", trial.id);
  int64_t step = 0;
  int64_t checkpoint = 0;
  int outcomes = 0;
  bool ended = false;
  for (const EventRecord& record : store.Events(trial.key, 0)) {
    if (record.sequence == 0) continue;
    if (ended) return Break(what + ": an event after the outcome");
    const auto stored = ToEvent(record, trial.experiment_id, trial.id, store.writer().name());
    if (!stored.ok()) return Break(std::string(stored.status().message()));
    const v1::Event& event = *stored;
    if (event.has_training_points()) {
      if (event.step() != step + kStepsBetweenPoints) {
        return Break(absl::StrCat(what, ": after the point of step ", step, " comes that of ",
                                  event.step()));
      }
      step = event.step();
    } else if (event.has_checkpoint()) {
      if (event.step() != step) return Break(what + ": a checkpoint spans a point");
      checkpoint = step;
    } else if (event.has_outcome()) {
      ++outcomes;
      ended = true;
      if (event.outcome().kind() != v1::Outcome::COMPLETED) {
        return Break(what + ": an outcome that was not accepted");
      }
      if (checkpoint != step) return Break(what + " succeeded without its model");
    }
  }
  if (outcomes != 1) Break(absl::StrCat(what, " has ", outcomes, " results"));
  const auto pack = *store.writer().FindPack(trial.pack);
  const auto specification = ToTrialSpecification(trial, *pack, store.writer().name());
  if (!specification.ok()) return Break(std::string(specification.status().message()));
  if (step != specification->training().steps()) {
    Break(absl::StrCat(what, " ends at step ", step));
  }
}

void Promise::CheckExperiment(SimulatedStorage& store, const std::string& id) {
  const auto experiment = *store.writer().FindExperiment(id);
  if (!experiment.has_value()) return;
  const v1::TrialCounts counted = store.CountTrials(experiment->key);
  if (!google::protobuf::util::MessageDifferencer::Equals(experiment->counts, counted)) {
    Break(absl::StrCat("the trials of ", id, " are miscounted"));
  }
  const bool ended = experiment->end_time != NoTime();
  if (ended != (UnendedTrials(counted) == 0)) Break(absl::StrCat(id, " has ended, or has not"));
}

void Promise::Started(SimulatedStorage& store, absl::Time now) {
  // A lease without trials, whose experiment was deleted, holds nothing up.
  std::set<int64_t> running;
  for (const TrialRecord& trial : store.UnendedTrials()) {
    if (trial.state == v1::RUNNING) running.insert(trial.token);
  }
  const std::vector<LeaseRecord> leases = *store.writer().ListLeases();
  for (const LeaseRecord& lease : leases) {
    if (running.contains(lease.token) ||
        !store.writer().ListCancelledTrials(lease.token)->empty()) {
      losses_count_from_ = now + kUnsettled;
    }
  }
}

void Promise::CheckRebuilt(SimulatedStorage& store, Scheduler& scheduler) {
  passed_over_.clear();  // the order of service is not stored
  last_token_ = *store.writer().NextToken() - 1;
  for (const auto& [request, experiment] : created_) {
    if (!deleted_.contains(experiment) && !store.writer().FindExperiment(experiment)->has_value()) {
      Break(absl::StrCat(experiment, " was acknowledged and is gone"));
    }
  }
  for (const TrialRecord& trial : store.UnendedTrials()) {
    if (trial.state == v1::QUEUED &&
        scheduler.WhyWaiting(trial.key, absl::InfinitePast()).empty()) {
      Break(absl::StrCat("there is no reason why ", trial.id, " waits after a restart"));
    }
    if (trial.state == v1::RUNNING && !HasLease(scheduler, trial)) {
      Break(absl::StrCat(trial.id, " lost its lease in a restart"));
    }
    if (trial.state != v1::RUNNING) continue;
    const auto acknowledged =
        acknowledged_.find({TrialName(trial.experiment_id, trial.id), trial.attempt});
    if (acknowledged == acknowledged_.end()) continue;
    if (*store.writer().LastSequence(trial.key, trial.attempt) < acknowledged->second) {
      Break(absl::StrCat(trial.id, " lost events that were acknowledged"));
    }
  }
}

std::optional<Promise::Choice> Promise::ChoiceOf(SimulatedStorage& store, absl::Time now) {
  if (++leases_ % full_check_every_ != 0) return std::nullopt;
  Choice choice;
  const auto owners = store.WaitingOwners(now);
  if (!owners.empty()) std::tie(choice.priority, choice.owners) = *owners.rbegin();
  choice.running = store.RunningTrialsByOwner();
  return choice;
}

void Promise::CheckLease(SimulatedStorage& store, const std::optional<Choice>& choice,
                         const std::string& process, const v1::SynchronizeResponse& response) {
  if (const int64_t token = response.lease().fencing_token();
      response.has_lease() && token <= last_token_) {
    const auto offered = offered_.find(token);
    if (offered == offered_.end() || offered->second != process) {
      return Break(absl::StrCat("lease ", token, " was offered to another process, or again"));
    }
    for (const v1::LeasedTrial& leased : response.lease().trials()) {
      const TrialPath path = *ParseTrialName(leased.trial());
      const auto trial = *store.writer().FindTrial(path.experiment, path.trial);
      if (!trial.has_value() || trial->token != token || trial->attempt != leased.attempt()) {
        Break(absl::StrCat("a lease was offered again without ", leased.trial()));
      }
    }
    ++counts_.offered_again;
    return;
  }
  // A worker whose first trials failed gets nothing for a while.
  const bool unfit = absl::StrContains(response.no_lease_reason(), "this machine can run now");
  if (choice.has_value() && response.has_lease() != choice->priority.has_value() && !unfit) {
    return Break(response.has_lease() ? "a trial was leased that does not wait"
                                      : "a worker asked in vain");
  }
  if (!response.has_lease()) {
    if (response.no_lease_reason().empty()) Break("a worker got nothing for no reason");
    return;
  }
  const v1::Lease& lease = response.lease();
  last_token_ = lease.fencing_token();
  offered_[last_token_] = process;
  if (lease.shape().empty()) Break("a lease without shape");
  if (choice.has_value()) CheckChoice(store, *choice, lease);
}

void Promise::CheckChoice(SimulatedStorage& store, const Choice& choice, const v1::Lease& lease) {
  std::set<int64_t> packs;
  std::string owner;
  for (const v1::LeasedTrial& leased : lease.trials()) {
    const TrialPath path = *ParseTrialName(leased.trial());
    const auto experiment = *store.writer().FindExperiment(path.experiment);
    packs.insert((*store.writer().FindTrial(path.experiment, path.trial))->pack);
    owner = experiment->owner;
    if (experiment->priority != *choice.priority) Break("a lower priority went first");
  }
  if (packs.size() != 1) Break("a lease of different packs");
  const auto running = [&](const std::string& of) {
    const auto found = choice.running.find(of);
    return found == choice.running.end() ? 0 : found->second;
  };
  for (const std::string& other : choice.owners) {
    if (running(other) < running(owner)) Break(absl::StrCat(owner, " went before ", other));
    // Turns can only be counted if every lease is checked.
    const bool passed =
        full_check_every_ == 1 && other != owner && running(other) == running(owner);
    if (passed && ++passed_over_[other] > static_cast<int64_t>(choice.owners.size()) + 8) {
      Break(absl::StrCat(other, " is passed over again and again"));
    }
  }
  std::erase_if(passed_over_,
                [&](const auto& entry) { return !choice.owners.contains(entry.first); });
  passed_over_.erase(owner);
}

void Promise::CheckEvents(const std::optional<TrialRecord>& before, int64_t last_before,
                          const v1::StreamEventsRequest& request,
                          const v1::StreamEventsResponse& response) {
  if (response.refusal() == v1::StreamEventsResponse::SEQUENCE_GAP) {
    Break("the server misses events that it has acknowledged: " + response.detail());
  }
  if (response.refusal() == v1::StreamEventsResponse::INVALID ||
      response.refusal() == v1::StreamEventsResponse::NOT_STORED) {
    Break("good events were refused: " + response.detail());
  }
  const bool stored = response.refusal() == v1::StreamEventsResponse::REFUSAL_UNSPECIFIED &&
                      response.acknowledged_sequence() > last_before;
  if (!stored) return;
  if (!before.has_value() || before->state != v1::RUNNING ||
      before->token != request.fencing_token() || before->attempt != request.events(0).attempt()) {
    Break(
        absl::StrCat("a stale lease wrote: ", request.lease_id(), ", ", request.events(0).trial()));
  }
}

void Promise::Acknowledge(const std::string& trial, int32_t attempt, int64_t sequence) {
  int64_t& acknowledged = acknowledged_[{trial, attempt}];
  acknowledged = std::max(acknowledged, sequence);
}

void Promise::Created(const std::string& request_id, const std::string& experiment) {
  const auto [known, is_new] = created_.emplace(request_id, experiment);
  if (known->second != experiment) {
    Break(absl::StrCat("one request made ", known->second, " and ", experiment));
  }
}

void Promise::Deleting(const std::string& experiment) { deleted_.insert(experiment); }

}  // namespace lengthwise::server
