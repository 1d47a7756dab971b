// What is known of the trials that run now, for the metrics and the watchers: in memory only, and
// dropped when a trial ends or is queued again.
#ifndef LENGTHWISE_SERVER_COORDINATION_RUNNING_TRIALS_H_
#define LENGTHWISE_SERVER_COORDINATION_RUNNING_TRIALS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"
#include "proto/specification.pb.h"
#include "server/coordination/length_buckets.h"
#include "server/coordination/statistics.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// A trial's attempt began. Names are those of v1::Trial, ids parts of them.
struct TrialStart {
  std::string name;
  std::string experiment_id;
  std::string trial_id;
  int32_t attempt = 0;
  std::string worker;
  std::string task;
  std::string network;
  std::string encoding;
  // Of the specification's evaluation.
  int32_t seen_up_to = 0;
  int32_t longest = 0;
};

// What happened to running trials, in order: a start, or an end where there is none.
struct RunningChange {
  std::string name;
  std::optional<TrialStart> start;
};

// What a worker tells of a trial.
struct WorkerProgress {
  std::string worker;
  v1::TrialProgress progress;
};

// The attempt that a trial is in began.
RunningChange StartOf(const TrialRecord& trial, const PackRecord& pack,
                      const v1::TrialSpecification& specification);

// Thread-safe.
class RunningTrials {
 public:
  // Trials that List shows: those that run longest. A metric has a series for each.
  static constexpr size_t kMostShown = 500;

  // What was committed. The start of an attempt that is known changes nothing.
  void Apply(const std::vector<RunningChange>& changes);
  // The id of the trial's experiment. Absent, and ignored: of a trial or an attempt that does not
  // run, or not on this worker.
  std::optional<std::string> Progress(const WorkerProgress& told_by);
  void Evaluated(absl::string_view name, const v1::LengthAccuracies& accuracies);

  // In the order of their starts.
  std::vector<RunningTrial> List() const;
  // As EventLog::ReadProgress, of the experiment of this id; of one trial where `name` is not
  // empty.
  std::vector<v1::TrialProgress> ProgressSince(absl::string_view experiment_id,
                                               absl::string_view name, int64_t max_trials,
                                               int64_t& since) const;

 private:
  struct Entry {
    TrialStart start;
    LengthBuckets buckets;
    int64_t number = 0;  // in the order of starts
    v1::TrialProgress progress;
    int64_t told = 0;  // number of the progress, in the order in which all came; 0 before the first
    std::optional<double> unseen_accuracy;
    std::map<std::string, double> accuracies;  // by bucket
  };
  using Trials = absl::flat_hash_map<std::string, Entry>;

  void Erase(Trials::iterator trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable platform::Mutex mutex_;
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t last_told_ ABSL_GUARDED_BY(mutex_) = 0;
  Trials trials_ ABSL_GUARDED_BY(mutex_);
  // Names of those that told something: by experiment's id, then by number.
  std::map<std::string, std::map<int64_t, std::string>, std::less<>> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RUNNING_TRIALS_H_
