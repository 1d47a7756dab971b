// Decides which worker runs which trials, and what becomes of them: a pure state machine. Commands
// and the time go in, decisions come out; no threads, no clock, no input or output. The coordinator
// records every decision in the store before anyone hears of it, and rebuilds a scheduler from
// these records (Add, RestoreLease).
//
// Only trials that have not ended are known here. A trial waits (QUEUED) or belongs to exactly one
// lease (RUNNING). Waiting trials that may train together form packs: same pack key, same
// checkpoint step. Packs are leased by priority and fair share (fair_queue.h); to pick one costs
// O(log n). A worker may be dedicated to one experiment: it is leased packs of that alone, and
// counts for the others as if it were not there.
//
// A pack that a worker's memory did not hold is split: its trials go on in packs of half the size,
// and the worker gets no larger ones of that shape. When packs of a higher priority wait and no
// worker is free, the lease of the lowest priority that runs longest is preempted: its worker
// stores checkpoints and gives it back. Which leases are being preempted, and what workers said of
// their memory, is not recorded: after a restart the first is decided again, the second is told
// again by the workers (trials keep their own limits).
#ifndef LENGTHWISE_SERVER_SCHEDULING_SCHEDULER_H_
#define LENGTHWISE_SERVER_SCHEDULING_SCHEDULER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/event.pb.h"
#include "server/scheduling/fair_queue.h"

namespace lengthwise::server {

// A lease's fencing token: ascending over all leases, from 1; 0 for none.
using Token = int64_t;

// What a trial went through that decides what becomes of it.
struct TrialPast {
  // Leases so far.
  int32_t attempt = 0;
  // Attempts that failed temporarily, the class of the last one's reason (failure_class.h), and the
  // step at which it failed.
  int32_t failures = 0;
  std::string failure;
  int64_t failure_step = 0;
  // Times that its lease was preempted.
  int32_t preemptions = 0;
  // Trials of its pack at once, at most: a larger pack did not fit a worker's memory. 0: any.
  int32_t pack_limit = 0;
  // Not leased before; the past for at once.
  absl::Time not_before = absl::InfinitePast();
};

// What the scheduler keeps of a trial that has not ended.
struct ScheduledTrial {
  TrialKey key = 0;
  // Trials with the same number differ only in seeds and learning rate.
  int64_t pack = 0;
  int64_t checkpoint_step = 0;
  TrialPast past;
};

// What all trials of a pack share.
struct PackTraits {
  // Higher is leased first.
  int32_t priority = 0;
  std::string owner;
  // Packs of the same shape and size need the same memory.
  std::string shape;
  // Id of the experiment that the pack is of.
  std::string experiment;
};

// A trial changed its state. What a store must keep of it to rebuild the scheduler is all here.
struct TrialChange {
  TrialKey trial = 0;
  v1::TrialState from = v1::TRIAL_STATE_UNSPECIFIED;
  v1::TrialState to = v1::TRIAL_STATE_UNSPECIFIED;
  // Who or what caused it, as in v1::StateChange, and why, as a sentence.
  std::string actor;
  std::string reason;
  // Of the lease that was given, or was lost; empty and 0 for a trial without one.
  std::string worker;
  Token token = 0;
  // With this change.
  TrialPast past;
  // When `to` is RUNNING: where the attempt goes on.
  int64_t resumed_from_step = 0;
};

// A lease began (`granted`) or ended.
struct LeaseChange {
  Token token = 0;
  std::string worker;
  bool granted = false;
  // When granted: its trials.
  int32_t size = 0;
};

// In the order in which they must be recorded.
struct Decisions {
  std::vector<LeaseChange> leases;
  std::vector<TrialChange> trials;
};

// What a worker is told of a lease that it says it holds.
struct LeaseDirective {
  Token token = 0;
  bool lost = false;
  std::vector<TrialKey> cancelled;
  // Why the lease is to be given back; empty: it is not.
  std::string preempted;
};

// Packs of one shape that could be leased now, to workers that train so many trials at once.
struct WantedPacks {
  // One of them, by its number.
  int64_t pack = 0;
  // The highest among them.
  int32_t priority = 0;
  int64_t trials = 0;
  int64_t packs = 0;
};

// Not thread-safe. Time never goes backwards between calls.
class Scheduler {
 public:
  struct Options {
    // A lease ends when no heartbeat came for so long.
    absl::Duration lease_duration = absl::Seconds(30);
    // A trial fails for good with its failure of this number; at least 1.
    int32_t max_failed_attempts = 3;
    // Wait after the first temporary failure; doubled at each further one up to the maximum.
    absl::Duration first_back_off = absl::Seconds(2);
    absl::Duration max_back_off = absl::Minutes(5);
    // A worker is forgotten after so long a silence.
    absl::Duration worker_memory = absl::Hours(1);
    // A worker without trials counts as free for this long after its last call, and for as long as
    // its heartbeat is held (ExpectSilence): a killed worker does not keep leases from being
    // preempted.
    absl::Duration free_memory = absl::Seconds(5);
    // A lease is not preempted before it has run so long.
    absl::Duration min_run = absl::Minutes(1);
    // A trial is preempted at most so often; 0: never.
    int32_t max_preemptions = 3;
  };

  // Tokens begin at `next_token`.
  Scheduler(const Options& options, Token next_token);

  // Queues a trial that is not yet known here.
  void Add(const ScheduledTrial& trial, const PackTraits& traits);

  // Brings a lease back after a restart, with a full duration from now: `running` are its live
  // trials, of one pack with `traits`; `cancelled` those whose cancellation the worker may not have
  // heard of. Not both empty. `size` is that of its LeaseChange.
  void RestoreLease(Token token, std::string worker, int32_t size,
                    const std::vector<ScheduledTrial>& running, const PackTraits& traits,
                    const std::vector<TrialKey>& cancelled, absl::Time now);

  // Registers a worker that trains up to `max_pack_size` (at least 1) trials at once, or renews its
  // registration. `experiment` is the id of the one that it is dedicated to, empty for none. Its
  // leases stay.
  void Register(absl::string_view worker, int32_t max_pack_size, absl::Time now,
                absl::string_view experiment = "");
  // Ends a worker's registration. Its leases stay until they expire or are given back.
  void Unregister(absl::string_view worker);
  bool IsRegistered(absl::string_view worker) const { return workers_.contains(worker); }
  // Takes over another scheduler's registrations and what it knows of their memory.
  void CopyWorkers(const Scheduler& other) { workers_ = other.workers_; }

  // Renews leases. NOT_FOUND: the worker is not registered.
  absl::StatusOr<std::vector<LeaseDirective>> Heartbeat(absl::string_view worker,
                                                        absl::Span<const Token> leases,
                                                        absl::Time now);
  // The directives of these leases of the worker. Renews nothing.
  std::vector<LeaseDirective> Directives(absl::string_view worker,
                                         absl::Span<const Token> leases) const;
  // The worker's next heartbeat comes this much later than others', because the answer to the last
  // one is held.
  void ExpectSilence(absl::string_view worker, absl::Duration hold);
  // Workers with a lease that got a directive since the last call: a trial was cancelled, or the
  // lease is preempted. A lease that expired is not among them: its worker had long been silent.
  std::vector<std::string> TakeWorkersToTell();

  // The worker's device takes at most so many trials (at least 1) of this shape at once. Without
  // effect for a worker that is not registered, or a shape that this scheduler cannot have named.
  void SetCapacity(absl::string_view worker, absl::string_view shape, int32_t max_pack_size);

  // The trials that Grant would lease to the worker now; empty when there are none, or the worker
  // is not registered.
  std::vector<TrialKey> NextPack(absl::string_view worker, absl::Time now);
  // Leases them: one lease, or no decision when there are none. NOT_FOUND: not registered.
  absl::StatusOr<Decisions> Grant(absl::string_view worker, absl::Time now);

  // The worker gives a lease back: its live trials are queued again. No decisions for a lease that
  // is not its.
  Decisions Release(absl::string_view worker, Token token, absl::string_view reason,
                    absl::Time now);

  // An attempt told its outcome after `step`. FAILED_PRECONDITION when the trial does not belong to
  // the lease.
  absl::StatusOr<Decisions> Finish(TrialKey trial, Token token, v1::Outcome::Kind kind,
                                   int64_t step, absl::string_view reason, absl::Time now);

  // No decisions for a trial that is not known (any more).
  Decisions Cancel(TrialKey trial, absl::string_view actor, absl::string_view reason);

  // Queues a trial again that has ended in the state `from`, with all attempts before it. No
  // decisions for one that has not ended.
  Decisions Retry(const ScheduledTrial& trial, const PackTraits& traits, v1::TrialState from,
                  absl::string_view actor, absl::string_view reason);

  // The trial cannot be run, for a reason that no other attempt removes. No decisions for one that
  // is not known (any more).
  Decisions Fail(TrialKey trial, absl::string_view reason);

  // A waiting trial cannot be leased before `until`, for a reason that passes, which WhyWaiting
  // tells. Not recorded: after a restart it is found out again. Without effect for a trial that is
  // not waiting.
  void Postpone(TrialKey trial, absl::Time until, absl::string_view reason);

  // The trial can go on from this step. A waiting trial moves to the pack of that step.
  void SetCheckpoint(TrialKey trial, int64_t step);

  // Ends leases whose time is over, preempts others, forgets workers that are silent for long.
  Decisions Tick(absl::Time now);
  // When a lease expires or can be preempted, or a back-off is over; nothing in sight:
  // InfiniteFuture.
  absl::Time NextDeadline() const;

  // True if some trial could be leased now to a worker that takes any.
  bool HasRunnable(absl::Time now);
  // True if some trial could be leased to the worker now, or it is not registered.
  bool HasRunnable(absl::string_view worker, absl::Time now);

  // What a waiting trial waits for, as a sentence; empty for one that is not waiting.
  std::string WhyWaiting(TrialKey trial, absl::Time now) const;
  // Why a worker that asked got nothing.
  std::string WhyNothing(absl::string_view worker) const;

  // How long a trial waits after its temporary failure of this number.
  absl::Duration BackOff(int32_t failures) const;

  Token next_token() const { return next_token_; }
  int64_t queued() const { return static_cast<int64_t>(trials_.size()) - running_; }
  int64_t running() const { return running_; }
  int64_t leases() const { return static_cast<int64_t>(leases_.size()); }
  int64_t LiveWorkers(absl::Time now) const;
  // Of those, the workers with a live trial.
  int64_t BusyWorkers(absl::Time now) const;
  // And those without one that take packs of the experiment: all but the workers that are dedicated
  // to another. Where it is empty, those that take packs of any.
  int64_t IdleWorkers(absl::Time now, absl::string_view experiment = "") const;
  // Registered workers, lost ones among them until they are forgotten; O(1).
  int64_t registered() const { return static_cast<int64_t>(workers_.size()); }
  // Runnable packs by shape, as workers of `max_pack_size` (at least 1) would lease them; of one
  // experiment, or of all where it is empty. O(packs).
  absl::btree_map<std::string, WantedPacks> Wanted(int32_t max_pack_size,
                                                   absl::string_view experiment = "") const;
  // True if the worker was heard of within a lease's duration.
  bool IsAlive(absl::string_view worker, absl::Time now) const;
  // The live trials of a worker's leases.
  std::vector<TrialKey> TrialsOf(absl::string_view worker) const;
  // The lease that a trial belongs to; 0 for none.
  Token LeaseOf(TrialKey trial) const;
  // What a trial's lease calls its shape; empty for a trial that is not known.
  std::string ShapeOf(TrialKey trial) const;
  // Leases that are to be given back and have not been.
  int64_t preempted() const { return preempted_; }

  // Compares all that is kept twice; INTERNAL names what does not fit. For tests: O(n).
  absl::Status CheckInvariants() const;

 private:
  struct Trial {
    ScheduledTrial data;
    Token lease = 0;
    bool delayed = false;
  };
  struct Pack {
    PackTraits traits;
    int64_t trials = 0;  // that are known
  };
  struct Lease {
    std::string worker;
    int64_t pack = 0;
    int32_t size = 0;  // trials when it was granted
    std::vector<TrialKey> live;
    std::vector<TrialKey> cancelled;
    absl::Time expires;
    std::string preempted;  // why; empty: it is not
    // Its place among the leases that can be preempted; absent while it has none.
    std::optional<std::pair<int32_t, absl::Time>> rank;
  };
  struct Worker {
    int32_t max_pack_size = 1;
    absl::Time last_seen;
    absl::Duration silence;                                // ExpectSilence, from last_seen on
    std::string experiment;                                // empty: not dedicated to one
    absl::flat_hash_map<std::string, int32_t> capacities;  // by shape
  };

  static PackId IdOf(const ScheduledTrial& trial) {
    return {trial.pack, trial.checkpoint_step, trial.past.pack_limit};
  }
  const PackTraits& TraitsOf(const ScheduledTrial& trial) const {
    return packs_.at(trial.pack).traits;
  }
  Trial& Remember(const ScheduledTrial& trial, const PackTraits& traits);
  void Forget(TrialKey trial);
  void Enqueue(Trial& trial);
  void Dequeue(Trial& trial);
  void InsertRunnable(const ScheduledTrial& trial);
  // The pack that a worker is leased next; null for none.
  const PackId* NextFor(const Worker& worker) const;
  void MatureDelayed(absl::Time now);
  void Renew(Token token, Lease& lease, absl::Time now);
  void Hold(Trial& trial, Token token, Lease& lease);
  // Takes a live trial out of its lease.
  void LetGo(Trial& trial);
  // The change of a trial from RUNNING or QUEUED, where it is now.
  TrialChange ChangeOf(const Trial& trial, v1::TrialState to, std::string actor,
                       std::string reason) const;
  // Takes the trial from its lease back into the queue.
  TrialChange Requeue(Trial& trial, std::string actor, std::string reason);
  // Takes the trial from its lease, or the queue, and forgets it.
  TrialChange End(TrialKey key, v1::TrialState to, std::string actor, std::string reason);
  void EndLease(Token token, Decisions& decisions);
  void EndLeaseIfDone(Token token, Decisions& decisions);
  // Queues the live trials of a lease again and ends it.
  void GiveUp(Token token, const std::string& actor, const std::string& reason,
              Decisions& decisions);
  TrialChange FailTemporarily(Trial& trial, const std::string& worker, int64_t step,
                              absl::string_view reason, absl::Time now);
  TrialChange SplitPack(Trial& trial, const Lease& lease, absl::string_view reason);
  // What a trial that could be leased waits for.
  std::string PlaceInQueue(const ScheduledTrial& trial) const;

  // Gives a lease its place among those that can be preempted, or takes it away.
  void Rank(Token token, Lease& lease, absl::Time granted);
  void Unrank(Token token, Lease& lease);
  // The lease to preempt next, if packs wait for it: whatever the time it has run.
  std::optional<Token> NextToPreempt(absl::Time now) const;
  void Preempt(absl::Time now);
  int64_t FreeWorkers(absl::Time now) const;

  // Invariants, which CheckInvariants verifies and the simulation checks after every step. Several
  // indices hold the same facts, so that each decision costs O(log n); the functions above keep
  // them equal (Hold and LetGo, Enqueue and Dequeue, Rank and Unrank, Remember and Forget).
  // - Every trial in trials_ is in exactly one place: the live trials of one lease (Trial::lease is
  //   its token), delayed_ (Trial::delayed), or queue_.
  // - A lease holds at least one live or cancelled trial. It ends with its last, so a token in
  //   leases_ is one that a worker may still show. Tokens only grow: all are below next_token_.
  // - Every lease has one entry in expiries_, at Lease::expires.
  // - The live trials of a lease are of one pack.
  // - ranks_ holds the leases that can be preempted: those with live trials that are not being
  //   preempted. Not among them are leases of dedicated workers, which no other experiment could
  //   use, and those with a trial that was preempted Options::max_preemptions times.
  // - running_, busy_, preempted_, Pack::trials and the queue's running trials by owner are counts
  //   of the above.
  // - postponed_ gives reasons to some trials of delayed_, and to no others.
  // - to_tell_ holds tokens of leases_ alone.
  const Options options_;
  Token next_token_;
  int64_t running_ = 0;
  absl::flat_hash_map<TrialKey, Trial> trials_;
  absl::flat_hash_map<int64_t, Pack> packs_;
  FairQueue queue_;  // trials that may be leased now
  absl::btree_set<std::pair<absl::Time, TrialKey>> delayed_;
  absl::flat_hash_map<TrialKey, std::string> postponed_;  // why, of delayed ones without a back-off
  absl::btree_map<Token, Lease> leases_;
  absl::btree_set<std::pair<absl::Time, Token>> expiries_;
  // Leases with a directive that TakeWorkersToTell has not returned.
  absl::flat_hash_set<Token> to_tell_;
  absl::btree_map<std::string, Worker> workers_;
  absl::flat_hash_map<std::string, int32_t> busy_;  // leases with live trials, by worker
  // Leases that can be preempted: priority, when they were granted, token.
  absl::btree_set<std::tuple<int32_t, absl::Time, Token>> ranks_;
  int64_t preempted_ = 0;
  absl::Time last_tick_ = absl::InfinitePast();
  // When workers that are silent for long are looked for again.
  absl::Time next_sweep_ = absl::InfinitePast();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SCHEDULING_SCHEDULER_H_
