// What the monitoring reads of the server: counts of this process, and the state of now.
#ifndef LENGTHWISE_SERVER_COORDINATION_STATISTICS_H_
#define LENGTHWISE_SERVER_COORDINATION_STATISTICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitoring/worker_sample.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// How often the scheduler decided what, and why, by what a metric's label says. Has all labels from
// the start, at 0: a rate needs a first value.
struct DecisionCounts {
  std::map<std::string, int64_t> decisions;
  std::map<std::string, int64_t> retries;   // of trials, by why they are queued again
  std::map<std::string, int64_t> failures;  // of trials that have failed for good
};
DecisionCounts NoDecisions();
// `before` is the trial as it was; `outcome` what its attempt told, null where it told none.
void CountTrialChange(const TrialChange& change, const TrialRecord& before,
                      const v1::Outcome* outcome, DecisionCounts& counts);
void CountLeaseChange(const LeaseChange& change, DecisionCounts& counts);
void Add(const DecisionCounts& more, DecisionCounts& counts);

// A trial that runs now.
struct RunningTrial {
  std::string experiment_id;
  std::string trial_id;
  std::string worker;
  std::string task;
  std::string network;
  std::string encoding;
  // The newest of this attempt; empty before the first.
  v1::TrialProgress progress;
  // Means of the newest evaluation: over the unseen lengths, where it had some, and by range of
  // lengths (at most 20 of them).
  std::optional<double> unseen_accuracy;
  std::map<std::string, double> accuracies;
};

struct Statistics {
  v1::TrialCounts trials;  // over all experiments
  // The 500 that run longest, and their experiments' counts by id.
  std::vector<RunningTrial> running_trials;
  std::map<std::string, v1::TrialCounts> running_experiments;
  int64_t leases = 0;
  // Workers that could lease a pack now, by the trials that each trains at once.
  std::map<int32_t, int64_t> wanted_workers;
  int64_t lease_expiries = 0;
  v1::Histogram lease_trials;  // sizes of the leases that were granted
  DecisionCounts decided;
  // Queue time of the oldest queued trial; 0 when none is queued.
  double oldest_queued_seconds = 0;
  std::vector<monitoring::WorkerSample> workers;  // live ones, by id
  int64_t events_stored = 0;
  int64_t points_stored = 0;  // points of loss curves
  // Of transactions that changed something: seconds, commands that they answered, and events.
  v1::Histogram commit_seconds;
  v1::Histogram commit_commands;
  v1::Histogram commit_events;
  int64_t commit_failures = 0;
  int64_t example_files_stored = 0;
  int64_t example_bytes_stored = 0;
  int64_t database_bytes = 0;
  // Of the data directory's file system; 0 where it does not say.
  int64_t disk_free_bytes = 0;
  int64_t disk_size_bytes = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_STATISTICS_H_
