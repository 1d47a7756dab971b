// The summaries of the experiments that were asked for most recently, kept up to date with every
// commit. A summary is made from the store when it is first asked for; after that an answer costs
// the same however many trials have finished.
#ifndef LENGTHWISE_SERVER_COORDINATION_SUMMARIES_H_
#define LENGTHWISE_SERVER_COORDINATION_SUMMARIES_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "server/coordination/experiment_summary.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Thread-safe.
class Summaries {
 public:
  // Bounds the memory: a summary has a few numbers for each trial, and 16 bytes for each length of
  // each cell.
  static constexpr size_t kMostHeld = 8;
  // A commit that changes more trials than this (a large experiment is cancelled) is not followed
  // on the committing thread: the next question makes the summary anew on its own.
  static constexpr size_t kMostFollowed = 1000;

  // `storage` must outlive it.
  explicit Summaries(Storage& storage) : storage_(storage) {}

  // As of a commit that is not older than the last Update before the call. NOT_FOUND.
  absl::StatusOr<v1::SummarizeExperimentResponse> Summarize(const std::string& experiment_id,
                                                            bool omit_lengths);

  // These trials are in another state since the last commit. Called after each, by one thread.
  void Update(const std::string& experiment_id, const absl::btree_set<int64_t>& trials);

  // What is held of the experiment is not true any more: it was deleted, or has other trials.
  void Forget(const std::string& experiment_id);
  // The store may have another history than the one that was told.
  void ForgetAll();

 private:
  // A trial as it is in the store now.
  struct Change {
    TrialRecord trial;
    // Of a trial that succeeded; the accuracies are the final ones.
    v1::LengthAccuracies accuracies;
    v1::Outcome outcome;
  };
  struct Held {
    platform::Mutex build_mutex;  // of the one who makes the summary; others wait
    platform::Mutex mutex;
    bool ready ABSL_GUARDED_BY(mutex) = false;
    ExperimentSummary summary ABSL_GUARDED_BY(mutex);
    // What was committed since it was asked for, until it is ready.
    std::vector<Change> missed ABSL_GUARDED_BY(mutex);
  };

  // Null for an experiment that is not held.
  std::shared_ptr<Held> Find(const std::string& experiment_id);
  std::shared_ptr<Held> FindOrAdd(const std::string& experiment_id);
  absl::Status MakeReady(const std::string& experiment_id, Held& held);
  absl::StatusOr<ExperimentSummary> Build(const std::string& experiment_id);
  static absl::StatusOr<Change> ReadChange(StorageReader& reader, TrialRecord trial);
  static void Apply(const Change& change, ExperimentSummary& summary);
  absl::StatusOr<std::vector<Change>> ReadChanges(const absl::btree_set<int64_t>& trials);

  Storage& storage_;
  platform::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Held>> held_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> asked_ ABSL_GUARDED_BY(mutex_);  // keys of held_, the newest first
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SUMMARIES_H_
