// Ledger: keeps the scheduler's memory and the store equal. It records the scheduler's decisions as
// rows and events of one transaction, and rebuilds the scheduler from the store after a failed
// commit.
#ifndef LENGTHWISE_SERVER_COORDINATION_LEDGER_H_
#define LENGTHWISE_SERVER_COORDINATION_LEDGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/log.h"
#include "proto/event.pb.h"
#include "server/coordination/running_trials.h"
#include "server/coordination/statistics.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// The part of a trial that the scheduler keeps in memory, without a back-off.
ScheduledTrial ToScheduled(const TrialRecord& record);

// Two clocks. `steady` never jumps and decides about leases. `wall` supplies the times in
// histories.
struct Clock {
  std::function<absl::Time()> steady;
  std::function<absl::Time()> wall;
};
// The system clocks. The steady clock starts at the current wall time.
Clock SystemClock();

// Effects of a commit that happen outside the store: waking watchers, counting. They wait for the
// commit, so that no change is visible before it is durable.
struct Effects {
  absl::flat_hash_set<std::string> experiments;  // ids: the history grew or ended
  // Keys of the trials that changed state, by experiment id.
  absl::btree_map<std::string, absl::btree_set<int64_t>> trials;
  // Ids of experiments whose set of trials changed, or that were deleted.
  absl::flat_hash_set<std::string> reshaped;
  std::vector<WorkerProgress> progress;
  int64_t events = 0;
  int64_t points = 0;
  int64_t lease_expiries = 0;
  std::vector<std::string> lost_workers;
  std::vector<std::pair<platform::LogLevel, std::string>> log;  // lines of the server's log
  DecisionCounts decided;
  std::vector<int32_t> granted;  // number of trials of each granted lease
  // Trials that started or stopped running, and evaluations of running trials (by name).
  std::vector<RunningChange> running;
  std::vector<std::pair<std::string, v1::LengthAccuracies>> evaluations;
};

// Not thread-safe: belongs to the command loop, which lets others read the scheduler between two
// groups. After an error of the store Commit fails, and Rebuild must follow.
class Ledger {
 public:
  // All references must outlive the ledger. Call Rebuild first.
  Ledger(const Scheduler::Options& options, Storage& storage, Clock clock);

  // Builds the scheduler from the store. Registered workers stay registered.
  absl::Status Rebuild();

  absl::Status Begin();
  absl::Status Commit();
  bool HasChanges() const { return store_.HasChanges(); }
  // Returns the effects collected since the last call.
  Effects TakeEffects() { return std::exchange(effects_, Effects()); }

  // The following are called between Begin and Commit.

  // Ends expired leases.
  absl::Status Tick();
  // Stores decisions: trials, leases, and changes of state as events at `step` (-1: the trial's
  // checkpoint). `outcome` is the outcome that the attempt sent; it is kept for a trial that
  // succeeds. Null: the attempt sent none.
  absl::Status Record(const Decisions& decisions, int64_t step = -1,
                      const v1::Outcome* outcome = nullptr);
  // Appends an event to a trial's history. Sets its time if it has none.
  absl::Status Append(const TrialRecord& trial, v1::Event event);
  // Called after the event of a checkpoint of `step` was appended: the trial will resume from it.
  // The checkpoint before the newest kKeptCheckpoints is swept.
  absl::Status StoreCheckpoint(TrialRecord& trial, int64_t step);

  // Progress of Expire. Each call handles a part in a transaction of its own.
  struct Expiry {
    int64_t experiment = 0;  // key
    int32_t next_index = 0;  // of its first trial that was not handled
  };
  // Deletes the attention maps, and has the checkpoints swept, of some trials whose experiment
  // ended longer ago than its retention, or `retention` if it has none (0: for ever). True if there
  // may be more.
  absl::StatusOr<bool> Expire(absl::Duration retention, Expiry& expiry);

  // INTERNAL if the store has no such trial.
  absl::StatusOr<TrialRecord> GetTrial(int64_t key);

  // While the store has room for deletions only, no leases are granted.
  void SetFull(bool full) { full_ = full; }
  bool full() const { return full_; }

  Scheduler& scheduler() { return *scheduler_; }
  StorageWriter& store() { return store_; }
  Effects& effects() { return effects_; }
  // Any thread.
  absl::Time Now() const { return clock_.steady(); }
  absl::Time WallTime() const { return clock_.wall(); }

 private:
  absl::Status RecordChange(const TrialChange& change, int64_t step, const v1::Outcome* outcome);
  // Has an ended trial's artifacts swept. A trial that keeps none loses its checkpoint step.
  absl::Status Retain(TrialRecord& trial);

  const Scheduler::Options options_;
  Storage& storage_;
  StorageWriter& store_;
  const Clock clock_;
  std::unique_ptr<Scheduler> scheduler_;
  Effects effects_;
  bool full_ = false;
  // Queued trials whose stored back-off is later than any back-off from now, because the clock was
  // set back. They hold the corrected time.
  std::vector<TrialRecord> misdated_;
  // Stored leases whose trials were all deleted with their experiment. The next transaction deletes
  // them.
  std::vector<Token> leases_without_trials_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LEDGER_H_
