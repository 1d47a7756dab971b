// Keeps the scheduler's memory and the store equal: records what the scheduler decides as rows and
// events of one transaction, and rebuilds the scheduler from the store when a commit failed.
#ifndef LENGTHWISE_SERVER_COORDINATION_LEDGER_H_
#define LENGTHWISE_SERVER_COORDINATION_LEDGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/event.pb.h"
#include "server/coordination/running_trials.h"
#include "server/coordination/statistics.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// What the scheduler keeps of a trial.
ScheduledTrial ToScheduled(const TrialRecord& record);

// Two clocks: `steady` never jumps and decides about leases, `wall` is what histories show.
struct Clock {
  std::function<absl::Time()> steady;
  std::function<absl::Time()> wall;
};
// The machine's. Its steady clock starts at the wall's time.
Clock SystemClock();

// What follows a commit: waking watchers, deleting files, counting. Nobody hears of a change before
// it is durable.
struct Effects {
  absl::flat_hash_set<std::string> experiments;  // ids of those whose history grew or ended
  // Keys of trials that are in another state, by experiment id.
  absl::btree_map<std::string, absl::btree_set<int64_t>> trials;
  // Ids of experiments that have other trials than before, or are gone.
  absl::flat_hash_set<std::string> reshaped;
  std::vector<WorkerProgress> progress;
  std::vector<std::function<void()>> actions;
  // Ids of experiments that are gone: their artifacts are deleted in parts.
  std::vector<std::string> deleted;
  // Instead of all that, when the commit failed: takes back what is not in the store.
  std::vector<std::function<void()>> reversals;
  int64_t events = 0;
  int64_t points = 0;
  int64_t lease_expiries = 0;
  DecisionCounts decided;
  std::vector<int32_t> granted;  // trials of each lease that was granted
  // Trials that began to run or do so no more, and what running ones measured (by name).
  std::vector<RunningChange> running;
  std::vector<std::pair<std::string, v1::LengthAccuracies>> evaluations;
};

// Not thread-safe: it belongs to the command loop, which lets others read the scheduler between two
// groups. After an error of the store Commit fails, and Rebuild must follow.
class Ledger {
 public:
  // All must outlive it. Rebuild comes first.
  Ledger(const Scheduler::Options& options, Storage& storage, ArtifactStore& artifacts,
         Clock clock);

  // Makes the scheduler from what the store has. Registered workers stay registered.
  absl::Status Rebuild();

  absl::Status Begin();
  absl::Status Commit();
  bool HasChanges() const { return store_.HasChanges(); }
  // What has gathered since the last call.
  Effects TakeEffects() { return std::exchange(effects_, Effects()); }

  // Between Begin and Commit.

  // Ends leases whose time is over.
  absl::Status Tick();
  // Stores decisions: trials, leases, changes of state as events that belong to `step` (-1: the
  // trial's checkpoint). `outcome` is what the trial that succeeds told.
  absl::Status Record(const Decisions& decisions, int64_t step = -1,
                      const v1::Outcome* outcome = nullptr);
  // Appends an event to a trial's history, with the time unless it has one.
  absl::Status Append(const TrialRecord& trial, v1::Event event);
  // The event of a checkpoint of `step` is in the history: the trial goes on from it. Deletes the
  // third newest after the commit.
  absl::Status StoreCheckpoint(TrialRecord& trial, int64_t step);

  // INTERNAL for a key that the store does not have.
  absl::StatusOr<TrialRecord> GetTrial(int64_t key);
  // The event of the trial's checkpoint at its checkpoint step; position 0 for the start.
  absl::StatusOr<EventRecord> CheckpointEvent(const TrialRecord& trial);

  Scheduler& scheduler() { return *scheduler_; }
  StorageWriter& store() { return store_; }
  Effects& effects() { return effects_; }
  absl::Time Now() const { return clock_.steady(); }
  absl::Time WallTime() const { return clock_.wall(); }

 private:
  absl::Status RecordChange(const TrialChange& change, int64_t step, const v1::Outcome* outcome);
  // Deletes, after the commit, what the specification does not keep of a trial that has ended; a
  // trial of which nothing is kept has no checkpoint any more.
  absl::Status Retain(TrialRecord& trial);

  const Scheduler::Options options_;
  Storage& storage_;
  StorageWriter& store_;
  ArtifactStore& artifacts_;
  const Clock clock_;
  std::unique_ptr<Scheduler> scheduler_;
  Effects effects_;
  // Waiting trials whose stored time is of another clock, with the right one.
  std::vector<TrialRecord> misdated_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LEDGER_H_
