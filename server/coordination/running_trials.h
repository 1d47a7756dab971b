// RunningTrials: state of running trials for metrics and watchers. In memory only; dropped when a
// trial ends or is requeued.
#ifndef LENGTHWISE_SERVER_COORDINATION_RUNNING_TRIALS_H_
#define LENGTHWISE_SERVER_COORDINATION_RUNNING_TRIALS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"
#include "proto/specification.pb.h"
#include "server/coordination/statistics.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// The start or the end of a trial's attempt. `name` is that of v1::Trial; the ids are parts of it.
struct RunningChange : RunningTrial {
  std::string name;
  // 0: the trial stopped running, and only its name is set.
  int32_t attempt = 0;
  // From the specification's evaluation.
  int32_t seen_up_to = 0;
  int32_t longest = 0;
};

// Progress of a trial as a worker reported it.
struct WorkerProgress {
  std::string worker;
  v1::TrialProgress progress;
};

// The start of the trial's current attempt.
RunningChange StartOf(const TrialRecord& trial, const PackRecord& pack,
                      const v1::TrialSpecification& specification);

// Ranges of lengths, by which the accuracies of a running trial are shown: at most kMost ranges of
// equal width, from 1 to the longest length. The width divides the longest training length, so that
// no range mixes seen and unseen lengths, unless that would leave fewer than a third of the ranges.
// Otherwise it is a round number.
class LengthBuckets {
 public:
  static constexpr int32_t kMost = 20;

  // `seen_up_to` 0: unknown.
  LengthBuckets(int32_t seen_up_to, int32_t longest);

  int32_t width() const { return width_; }

  // "041-060", or "041" for a range of one length. Labels sort as text in the order of lengths.
  // Lengths beyond the longest belong to the last range, lengths below 1 to the first.
  std::string Label(int32_t length) const;

 private:
  const int32_t longest_;
  const int32_t width_;
};

// Thread-safe.
class RunningTrials {
 public:
  // Maximum number of trials that List returns, those that have run longest: a metric has a series
  // for each.
  static constexpr size_t kMostShown = 500;

  // Applies committed changes, in the order in which they happened. A start of the current attempt
  // is a no-op.
  void Apply(const std::vector<RunningChange>& changes);
  // Stores the progress and returns the id of the trial's experiment. Absent, and ignored, if the
  // trial or the attempt is not running, or not on this worker.
  std::optional<std::string> Progress(const WorkerProgress& told_by);
  void Evaluated(absl::string_view name, const v1::LengthAccuracies& accuracies);

  // In the order of their starts.
  std::vector<RunningTrial> List() const;
  // As EventLog::ReadProgress: of the experiment, or of one trial if `name` is not empty.
  std::vector<v1::TrialProgress> ProgressSince(absl::string_view experiment_id,
                                               absl::string_view name, int64_t max_trials,
                                               int64_t& since) const;

 private:
  struct Entry {
    RunningChange trial;
    int64_t number = 0;  // in the order of starts
    int64_t told = 0;    // number of the newest report, over all trials; 0 before the first
  };
  using Trials = absl::flat_hash_map<std::string, Entry>;

  void Erase(Trials::iterator trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable platform::Mutex mutex_;
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t last_told_ ABSL_GUARDED_BY(mutex_) = 0;
  Trials trials_ ABSL_GUARDED_BY(mutex_);
  // Names of trials that reported progress: by experiment id, then by number of the report.
  std::map<std::string, std::map<int64_t, std::string>, std::less<>> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RUNNING_TRIALS_H_
