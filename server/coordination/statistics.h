// Statistics: the server's values for monitoring, counters of this process and current state.
#ifndef LENGTHWISE_SERVER_COORDINATION_STATISTICS_H_
#define LENGTHWISE_SERVER_COORDINATION_STATISTICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitoring/samples.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// Scheduler decisions, counted by the value of a metric's label. All labels are present from the
// start, at 0: a rate needs a first value.
struct DecisionCounts {
  std::map<std::string, int64_t> decisions;
  std::map<std::string, int64_t> retries;   // of trials, by the reason for requeueing
  std::map<std::string, int64_t> failures;  // of trials that failed for good
};
DecisionCounts NoDecisions();
// `before` is the trial before the change. `outcome` is the outcome that its attempt sent, null if
// it sent none.
void CountTrialChange(const TrialChange& change, const TrialRecord& before,
                      const v1::Outcome* outcome, DecisionCounts& counts);
void CountLeaseChange(const LeaseChange& change, DecisionCounts& counts);
void Add(const DecisionCounts& more, DecisionCounts& counts);

// A trial that is running now.
struct RunningTrial {
  std::string experiment_id;
  std::string trial_id;
  std::string worker;
  std::string task;
  std::string network;
  std::string encoding;
  // Newest progress of this attempt. Empty before the first.
  v1::TrialProgress progress;
  // Means of the newest evaluation: over the unseen lengths, if it had any, and by range of lengths
  // (at most 20 ranges).
  std::optional<double> unseen_accuracy;
  std::map<std::string, double> accuracies;
};

struct Statistics {
  v1::TrialCounts trials;  // over all experiments
  // The 500 trials that have run longest, and the counts of their experiments by id.
  std::vector<RunningTrial> running_trials;
  std::map<std::string, v1::TrialCounts> running_experiments;
  int64_t leases = 0;
  // Number of workers that could lease a pack now, by the number of trials each would train at
  // once.
  std::map<int32_t, int64_t> wanted_workers;
  int64_t lease_expiries = 0;
  int64_t lost_workers = 0;
  v1::Histogram lease_trials;  // trials per granted lease
  DecisionCounts decided;
  // Queue time of the oldest queued trial. 0 if none is queued.
  double oldest_queued_seconds = 0;
  std::vector<monitoring::WorkerSample> workers;  // live workers, ordered by id
  int64_t drained_workers = 0;                    // those of them that get no new leases
  bool queue_paused = false;
  int64_t unfit_workers = 0;  // those of them that get no packs of some shape
  int64_t events_stored = 0;
  int64_t points_stored = 0;  // points of loss curves
  // Transactions that changed something: duration in seconds, commands answered, events stored.
  v1::Histogram commit_seconds;
  v1::Histogram commit_commands;
  v1::Histogram commit_events;
  int64_t commit_failures = 0;
  int64_t example_files_stored = 0;
  int64_t example_bytes_stored = 0;
  int64_t database_bytes = 0;
  std::vector<v1::OwnerUsage> owners;  // as measured last
  // In seconds since 1970; 0 if there is no backup.
  double last_backup_seconds = 0;
  bool last_backup_failed = false;
  // Free space and size of the data directory's file system, or of that of the checkpoints if a
  // smaller share of it is free. 0 if unknown.
  int64_t disk_free_bytes = 0;
  int64_t disk_size_bytes = 0;
  // There is only room for deletions.
  bool disk_full = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_STATISTICS_H_
