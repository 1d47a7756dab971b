// Scheduler: decides which worker runs which trials, and what follows from each outcome. A pure
// state machine: commands and time go in, decisions come out; it has no threads, clock or I/O. The
// ledger records every decision in the store before it becomes visible, and rebuilds the scheduler
// from these records (Add, RestoreLease).
//
// The scheduler knows only trials that have not ended. A trial is waiting (QUEUED) or belongs to
// exactly one lease (RUNNING). Waiting trials that may train together form packs: same pack key,
// same checkpoint step. Packs are leased by priority and fair share (fair_queue.h); picking one
// costs O(log n). A worker may be dedicated to one experiment: it is leased only that experiment's
// packs, and does not count as a worker for the others.
//
// A pack that ran out of memory is split: its trials continue in packs of half the size, and the
// worker gets no larger ones of that shape. A trial whose workers are lost again and again may be
// what ends them: it runs alone, so that no other trial is condemned with it, and then fails. If
// packs of a higher priority wait and no worker is free, the longest-running lease of the lowest
// priority is preempted: its worker stores checkpoints and gives it back.
//
// What is wrong with a worker's machine is no failure of a trial: the worker is unfit for packs of
// that shape, gets none of them for a while, and then tries again.
//
// Preemptions in progress, and workers' memory limits and faults, are not recorded. After a
// restart, the scheduler decides again about preemption, and workers report the others again
// (trials keep their own limits).
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
#include "server/scheduling/trial_past.h"

namespace lengthwise::server {

// Fencing token of a lease. Ascends over all leases, from 1; 0 for none.
using Token = int64_t;

// The reason without the parts that differ between failures of one cause: each word that contains a
// digit (a count, a size, an address, a host's number) becomes "#". At most 200 bytes.
std::string FailureClass(absl::string_view reason);

// A trial that has not ended, as the scheduler keeps it.
struct ScheduledTrial {
  TrialKey key = 0;
  // Trials with the same number differ only in seeds and learning rate.
  int64_t pack = 0;
  int64_t checkpoint_step = 0;
  TrialPast past;
};

// Properties that all trials of a pack share.
struct PackTraits {
  // A higher priority is leased first.
  int32_t priority = 0;
  std::string owner;
  // Packs of the same shape and size need the same memory.
  std::string shape;
  // Id of the pack's experiment.
  std::string experiment;
  // Maximum number of trials in a lease, whose message has a limit. 0: none.
  int32_t most = 0;
};

// A trial's change of state. Contains everything a store must keep of it to rebuild the scheduler.
struct TrialChange {
  TrialKey trial = 0;
  v1::TrialState from = v1::TRIAL_STATE_UNSPECIFIED;
  v1::TrialState to = v1::TRIAL_STATE_UNSPECIFIED;
  // The cause, as in v1::StateChange, and the reason as a sentence.
  std::string actor;
  std::string reason;
  // The lease granted or lost. Empty and 0 for a trial without a lease.
  std::string worker;
  Token token = 0;
  // After this change.
  TrialPast past;
  // For RUNNING: the step that the attempt resumes from.
  int64_t resumed_from_step = 0;
};

// A lease was granted or ended.
struct LeaseChange {
  Token token = 0;
  std::string worker;
  bool granted = false;
  // Number of trials when granted, and whose they are.
  int32_t size = 0;
  std::string owner;
};

// Must be recorded in this order.
struct Decisions {
  std::vector<LeaseChange> leases;
  std::vector<TrialChange> trials;
  // Workers that have been silent for a lease duration, with or without a lease. Not recorded.
  std::vector<std::string> lost_workers;
};

// The answer to a worker about one lease that it reports.
struct LeaseDirective {
  bool lost = false;
  std::vector<TrialKey> cancelled;
  // Why the worker must give the lease back. Empty if it need not.
  std::string preempted;
};

// Packs of one shape that could be leased now, for a given pack size.
struct WantedPacks {
  // The number of one of them.
  int64_t pack = 0;
  // The highest priority among them.
  int32_t priority = 0;
  int64_t trials = 0;
  int64_t packs = 0;
};

// What the scheduler keeps of a worker's process for its caller.
struct WorkerSession {
  std::string id;
  // Those of the processes that this one replaced, the newest last. They may still live.
  std::vector<std::string> replaced;
  // Of its last call.
  int64_t number = 0;
  // The last lease that was granted to it, until it lists the lease. 0: none.
  Token untold = 0;
};

// Not thread-safe. Time must not go backwards between calls.
class Scheduler {
 public:
  struct Options {
    // A lease expires after this long without a heartbeat.
    absl::Duration lease_duration = absl::Seconds(30);
    // A trial fails permanently with this number of temporary failures. At least 1.
    int32_t max_failed_attempts = 3;
    // A trial fails permanently with this number of TrialPast::losses. It runs alone before.
    int32_t max_losses = 3;
    // Wait after the first temporary failure. Doubles with each further failure, up to the maximum.
    absl::Duration first_back_off = absl::Seconds(2);
    absl::Duration max_back_off = absl::Minutes(5);
    // A worker is forgotten after this long without a call.
    absl::Duration worker_memory = absl::Hours(1);
    // A worker without trials counts as free for this long after its last call, and for as long as
    // its heartbeat is held (ExpectSilence): a killed worker does not keep leases from being
    // preempted.
    absl::Duration free_memory = absl::Seconds(5);
    // Minimum run time of a lease before it may be preempted.
    absl::Duration min_run = absl::Minutes(1);
    // Maximum number of preemptions of a trial. 0: none.
    int32_t max_preemptions = 3;
  };

  // `next_token` is the first token to be granted.
  Scheduler(const Options& options, Token next_token);

  // Queues a trial that the scheduler does not know.
  void Add(const ScheduledTrial& trial, const PackTraits& traits);

  // Restores a lease after a restart, with a full duration from now. `running` are its live trials,
  // all of one pack with `traits`. `cancelled` are trials of whose cancellation the worker may not
  // know. At least one of them is not empty. `size` is that of its LeaseChange.
  void RestoreLease(Token token, std::string worker, int32_t size,
                    const std::vector<ScheduledTrial>& running, const PackTraits& traits,
                    const std::vector<TrialKey>& cancelled, absl::Time now);

  // Registers a worker that trains up to `max_pack_size` (at least 1) trials at once, or renews its
  // registration. `experiment` is the id of the experiment that it is dedicated to; empty: none.
  // Existing leases stay.
  void Register(absl::string_view worker, int32_t max_pack_size, absl::Time now,
                absl::string_view experiment = "");
  // The worker's machine cannot run the lease, for this reason. It gets no packs of this shape for
  // a while, which doubles each time. Registering again or completing a trial of this shape ends
  // that. No-op if the lease is not the worker's.
  void SetUnfit(absl::string_view worker, Token token, absl::string_view why, absl::Time now);
  // Why the worker gets no packs of some shape now. Empty if it gets all.
  std::string FaultOf(absl::string_view worker, absl::Time now) const;
  // Ends a worker's registration. Its leases stay until they expire or are released.
  void Unregister(absl::string_view worker);
  // Holds new leases back from a worker, registered or not, or from all (""), for this reason; an
  // empty one ends the hold. A held worker must also give back its leases, as for a preemption.
  void HoldBack(absl::string_view worker, absl::string_view why);
  // Why new leases are held back from the worker, or from all (""). Empty if they are not.
  std::string HoldOf(absl::string_view worker) const;
  // Null if the worker is not registered. Valid until workers are registered or forgotten.
  WorkerSession* FindSession(absl::string_view worker);
  // Copies what is not recorded: registrations, memory limits, and since when losses count.
  void CopyWorkers(const Scheduler& other) {
    workers_ = other.workers_;
    losses_count_from_ = other.losses_count_from_;
    fleet_size_ = other.fleet_size_;
    next_count_ = other.next_count_;
    next_loss_ = other.next_loss_;
    // Nothing was heard since, which is no silence of the workers.
    if (heard_ == absl::InfiniteFuture() || heard_ <= other.heard_) return;
    for (auto& [name, worker] : workers_) {
      if (!worker.lost) worker.last_seen += heard_ - other.heard_;
    }
  }

  // Renews leases. NOT_FOUND if the worker is not registered.
  absl::Status Heartbeat(absl::string_view worker, absl::Span<const Token> leases, absl::Time now);
  // The live trials of a lease. Empty if it is not the worker's.
  std::vector<TrialKey> LiveTrials(absl::string_view worker, Token token) const;
  // The directive of a lease of the worker. Renews nothing.
  LeaseDirective DirectiveOf(absl::string_view worker, Token token) const;
  // The worker's next heartbeat comes this much later than others', because the answer to the last
  // one is held.
  void ExpectSilence(absl::string_view worker, absl::Duration hold);
  // Workers with a lease that got a directive since the last call: a trial was cancelled, or the
  // lease is preempted. A lease that expired is not among them: its worker had long been silent.
  std::vector<std::string> TakeWorkersToTell();
  // True if a lease of the worker has a directive, whether or not the worker knows of the lease
  // yet.
  bool HasDirective(absl::string_view worker) const { return directed_.contains(worker); }

  // Limits the worker to `max_pack_size` (at least 1) trials of this shape at once. No-op if the
  // worker is not registered, or if the shape is too long to come from this scheduler.
  void SetCapacity(absl::string_view worker, absl::string_view shape, int32_t max_pack_size);

  // The trials that Grant would lease to the worker now. Empty if there are none or the worker is
  // not registered.
  std::vector<TrialKey> NextPack(absl::string_view worker, absl::Time now);
  // Leases these trials: one lease, or no decision if there are none. NOT_FOUND if the worker is
  // not registered.
  absl::StatusOr<Decisions> Grant(absl::string_view worker, absl::Time now);

  // The worker gives a lease back; its live trials are requeued. `lost`: it does so because it ends
  // with a fault that they may have caused, unless the worker fails alone. No decisions if the
  // lease is not the worker's.
  Decisions Release(absl::string_view worker, Token token, absl::string_view reason,
                    bool lost = false);

  // Ends all leases and requeues their live trials. `what` says what happened to each: "was
  // released because ...".
  Decisions EndLeases(absl::string_view what);

  // An attempt reported its outcome after `step`. FAILED_PRECONDITION if the trial does not belong
  // to the lease.
  absl::StatusOr<Decisions> Finish(TrialKey trial, Token token, v1::Outcome::Kind kind,
                                   int64_t step, absl::string_view reason, absl::Time now);

  // The experiment's trials count towards another owner's share from now on. O(trials).
  void ChangeOwner(absl::string_view experiment, absl::string_view owner);

  // No decisions for an unknown trial.
  Decisions Cancel(TrialKey trial, absl::string_view actor, absl::string_view reason);

  // Requeues a trial that ended in the state `from`. It keeps its number of attempts. No decisions
  // for a trial that has not ended.
  Decisions Retry(const ScheduledTrial& trial, const PackTraits& traits, v1::TrialState from,
                  absl::string_view actor, absl::string_view reason);

  // The trial cannot run, for a reason that another attempt would not remove. No decisions for an
  // unknown trial.
  Decisions Fail(TrialKey trial, absl::string_view reason);

  // A waiting trial cannot be leased before `until`, for a temporary reason that WhyWaiting
  // reports. Not recorded, because it can be determined again after a restart. No-op for a trial
  // that is not waiting.
  void Postpone(TrialKey trial, absl::Time until, absl::string_view reason);

  // The trial can resume from this step. A waiting trial moves to the pack of that step.
  void SetCheckpoint(TrialKey trial, int64_t step);

  // All calls that arrived until `heard` are applied before the next Tick, which therefore ends no
  // lease that expires later. Call it before they are applied, and whenever NextDeadline says so.
  // If it comes more than lease_duration / 10 after the last one, the workers could not be heard:
  // the process was stopped, or its disk hung. The excess counts towards no lease's expiry and no
  // worker's silence. If it is never called, every Tick has heard everything.
  void Hear(absl::Time heard);
  // Ends expired leases, preempts leases, names lost workers, and forgets those that have been
  // silent for long. Leaves leases for the next Tick when it has requeued a thousand trials: others
  // wait meanwhile.
  Decisions Tick(absl::Time now);
  // The earliest time at which a lease expires or can be preempted, a back-off ends, or Hear is
  // due. InfiniteFuture if there is none.
  absl::Time NextDeadline() const;
  // The earliest time at which Tick can find a worker lost, or at which Hear is due for that.
  // InfiniteFuture if no worker lives.
  absl::Time NextLoss() const;

  // True if some trial could be leased now to a worker that takes any.
  bool HasRunnable(absl::Time now);
  // True if some trial could be leased to the worker now, or it is not registered.
  bool HasRunnable(absl::string_view worker, absl::Time now);

  // Why a trial waits, as a sentence. Empty if it is not waiting.
  std::string WhyWaiting(TrialKey trial, absl::Time now) const;
  // Why a worker's request for a pack returned nothing.
  std::string WhyNothing(absl::string_view worker, absl::Time now) const;

  // Back-off after a trial's temporary failure of this number.
  absl::Duration BackOff(int32_t failures) const;

  int64_t queued() const { return queue_.trials() + static_cast<int64_t>(delayed_.size()); }
  int64_t running() const { return static_cast<int64_t>(trials_.size()) - queued(); }
  int64_t leases() const { return static_cast<int64_t>(leases_.size()); }
  // Number of live workers with a live trial.
  int64_t BusyWorkers(absl::Time now) const;
  // True if the worker lives, has no trial and takes packs of the experiment: it is not dedicated
  // to another one. `experiment` empty: it is not dedicated.
  bool IsIdle(absl::string_view worker, absl::Time now, absl::string_view experiment = "") const;
  // Number of live workers. Includes those that were lost within the last second. O(1).
  int64_t fleet_size() const { return fleet_size_; }
  // Runnable packs by shape, as workers of `max_pack_size` (at least 1) would lease them. Only
  // those of `experiment`, unless it is empty. O(packs).
  absl::btree_map<std::string, WantedPacks> Wanted(int32_t max_pack_size,
                                                   absl::string_view experiment = "") const;
  // True if the worker called within the last lease duration.
  bool IsAlive(absl::string_view worker, absl::Time now) const;
  // The live trials of all leases, by worker. Workers without one are absent. O(trials).
  absl::flat_hash_map<std::string, std::vector<TrialKey>> TrialsByWorker() const;

  // Checks the invariants below. INTERNAL names the violation. For tests: O(n).
  absl::Status CheckInvariants() const;

 private:
  struct Trial {
    ScheduledTrial data;
    Token lease = 0;
    bool delayed = false;
    std::string failed_on;  // the worker of its last temporary failure; not recorded
  };
  struct Pack {
    PackTraits traits;
    int64_t trials = 0;  // number of known trials
  };
  struct Lease {
    std::string worker;
    int64_t pack = 0;
    int32_t size = 0;  // number of trials when granted
    std::vector<TrialKey> live;
    std::vector<TrialKey> cancelled;
    absl::Time expires;
    std::string preempted;  // reason; empty if not being preempted
    // Directives stay until the lease ends.
    bool has_directive() const { return !cancelled.empty() || !preempted.empty(); }
    // Its entry in ranks_. Absent if it cannot be preempted.
    std::optional<std::pair<int32_t, absl::Time>> rank;
  };
  // A worker gets no packs of some shape.
  struct Unfit {
    std::string why;
    absl::Duration pause;
    absl::Time until;
  };
  struct Worker {
    int32_t max_pack_size = 1;
    absl::Time last_seen;
    absl::Duration silence;  // ExpectSilence, from last_seen on
    bool lost = false;       // Tick has named it since last_seen
    std::string experiment;  // empty: not dedicated to one
    WorkerSession session;
    absl::flat_hash_map<std::string, int32_t> capacities;  // by shape
    absl::btree_map<std::string, Unfit> unfit;             // by shape; empty: all shapes
    int32_t failed = 0;   // trials that failed temporarily, one after the other
    bool proven = false;  // it has completed a trial since it registered
  };

  bool RunsAlone(const TrialPast& past) const { return past.losses >= options_.max_losses - 1; }
  PackId IdOf(const ScheduledTrial& trial) const {
    return {trial.pack, trial.checkpoint_step, RunsAlone(trial.past) ? 1 : trial.past.pack_limit};
  }
  const PackTraits& TraitsOf(const ScheduledTrial& trial) const {
    return packs_.at(trial.pack).traits;
  }
  Trial& Remember(const ScheduledTrial& trial, const PackTraits& traits);
  void Forget(TrialKey trial);
  void Enqueue(Trial& trial);
  void Dequeue(Trial& trial);
  void InsertRunnable(const ScheduledTrial& trial);
  // The next pack for a worker. Null if there is none.
  const PackId* NextFor(absl::string_view name, const Worker& worker, absl::Time now) const;
  // Why the worker gets no packs of this shape (empty: of some shape). Null if it gets them.
  static const Unfit* UnfitFor(const Worker& worker, absl::string_view shape, absl::Time now);
  static void MarkUnfit(Worker& worker, const std::string& shape, absl::string_view why,
                        absl::Time now);
  // True if the worker has completed nothing yet, and another one runs or has completed trials and
  // does not fail: its failures are its machine's rather than the trials'.
  bool FailsAlone(absl::string_view worker, absl::Time now) const;
  void See(Worker& worker, absl::Time now);
  // Counts the live workers and appends those that were lost since the last count.
  void CountWorkers(absl::Time now, std::vector<std::string>& lost);
  void MatureDelayed(absl::Time now);
  void Renew(Token token, Lease& lease, absl::Time now);
  void Hold(Trial& trial, Token token, Lease& lease);
  // Removes a live trial from its lease.
  void LetGo(Trial& trial);
  // A change of a trial from its current state, RUNNING or QUEUED.
  TrialChange ChangeOf(const Trial& trial, v1::TrialState to, std::string actor,
                       std::string reason) const;
  // Moves the trial from its lease back to the queue.
  TrialChange Requeue(Trial& trial, std::string actor, std::string reason);
  // Removes the trial from its lease or the queue, and forgets it.
  TrialChange End(TrialKey key, v1::TrialState to, std::string actor, std::string reason);
  // Call before a lease gets a directive.
  void NoteDirective(Token token, const Lease& lease);
  void EndLease(Token token, Decisions& decisions);
  void EndLeaseIfDone(Token token, Decisions& decisions);
  // Requeues the live trials of a lease and ends it. `lost`: its worker was lost, which counts
  // against the trials.
  void GiveUp(Token token, const std::string& actor, const std::string& reason, bool lost,
              Decisions& decisions);
  TrialChange FailTemporarily(Trial& trial, const std::string& worker, int64_t step,
                              absl::string_view reason, absl::Time now);
  TrialChange SplitPack(Trial& trial, const Lease& lease, absl::string_view reason);
  // Why a trial that could be leased is still waiting.
  std::string PlaceInQueue(const ScheduledTrial& trial) const;

  // Adds a lease to ranks_ if it can be preempted, or removes it.
  void Rank(Token token, Lease& lease, absl::Time granted);
  void Unrank(Token token, Lease& lease);
  // The lease to preempt next if packs wait for it, regardless of how long it has run.
  std::optional<Token> NextToPreempt(absl::Time now) const;
  void Preempt(absl::Time now);
  // Has the lease given back, for this reason. It has live trials and is not being preempted.
  void Recall(Token token, Lease& lease, std::string why);
  int64_t FreeWorkers(absl::Time now) const;

  // Invariants. CheckInvariants verifies them, and the simulation calls it after every step.
  // Several indices hold the same facts, so that each decision costs O(log n). Pairs of functions
  // keep them equal: Hold and LetGo, Enqueue and Dequeue, Rank and Unrank, Remember and Forget.
  // - Every trial in trials_ is in exactly one place: the live trials of one lease (Trial::lease is
  //   its token), delayed_ (Trial::delayed), or queue_. A trial in two places would run twice; a
  //   trial in none would never end.
  // - A lease holds at least one live or cancelled trial, and ends with its last one. An empty
  //   lease would keep a worker that has nothing to run renewing it.
  // - Tokens only grow, and all are below next_token_. A reused token would let an old attempt
  //   write into a new one.
  // - Every lease has one entry in expiries_, at Lease::expires. A lease without one would keep its
  //   trials for ever after its worker died.
  // - The live trials of a lease belong to one pack, because the worker trains them as one model.
  // - ranks_ holds the leases that can be preempted: those with live trials that are not being
  //   preempted. It excludes leases of dedicated workers, because no other experiment could use the
  //   worker, and leases with a trial that was preempted Options::max_preemptions times, because
  //   every trial must end.
  // - busy_, preempted_, Pack::trials and the queue's running trials by owner are counts of the
  //   above.
  // - postponed_ gives reasons to some trials of delayed_, and to no others.
  // - directed_ counts the leases with a directive by worker. A worker that is missing there would
  //   hear of a cancellation late, because its heartbeat is held.
  // - to_tell_ holds only tokens of such leases.
  const Options options_;
  Token next_token_;
  absl::flat_hash_map<TrialKey, Trial> trials_;
  absl::flat_hash_map<int64_t, Pack> packs_;
  FairQueue queue_;  // trials that can be leased now
  absl::btree_set<std::pair<absl::Time, TrialKey>> delayed_;
  absl::flat_hash_map<TrialKey, std::string> postponed_;  // reasons of postponed trials
  absl::btree_map<Token, Lease> leases_;
  absl::btree_set<std::pair<absl::Time, Token>> expiries_;
  // Leases with a directive that TakeWorkersToTell has not returned.
  absl::flat_hash_set<Token> to_tell_;
  absl::flat_hash_map<std::string, int32_t>
      directed_;  // number of leases with a directive, by worker
  absl::btree_map<std::string, Worker> workers_;
  absl::btree_map<std::string, std::string> holds_;  // reasons, by worker; "": all
  absl::flat_hash_map<std::string, int32_t> busy_;   // number of leases with live trials, by worker
  // Leases that can be preempted: priority, time of the grant, token.
  absl::btree_set<std::tuple<int32_t, absl::Time, Token>> ranks_;
  int64_t preempted_ = 0;  // leases that are being preempted and have not been given back
  absl::Time last_tick_ = absl::InfinitePast();
  absl::Time heard_ = absl::InfiniteFuture();  // InfiniteFuture before the first Hear
  absl::Time losses_count_from_ = absl::InfinitePast();
  int64_t fleet_size_ = 0;
  absl::Time next_count_ = absl::InfinitePast();
  // No live worker is lost before. InfiniteFuture if none lives.
  absl::Time next_loss_ = absl::InfiniteFuture();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SCHEDULING_SCHEDULER_H_
