// Summaries: a cache of the summaries of recently queried experiments, updated with every commit.
// The first query reads the store; the cost of later ones does not depend on the number of finished
// trials.
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
  // Maximum number of cached summaries, to bound the memory: a summary has a few numbers per trial,
  // and 16 bytes for each length of each cell.
  static constexpr size_t kMostHeld = 8;
  // A commit that changes more trials than this (a large experiment is cancelled) evicts the
  // summary instead of delaying the committing thread. The next query rebuilds it on its own
  // thread.
  static constexpr size_t kMostFollowed = 1000;

  // `storage` must outlive it.
  explicit Summaries(Storage& storage) : storage_(storage) {}

  // The answer is at least as new as the last Update before the call; it has no heading. NOT_FOUND.
  absl::StatusOr<v1::SummarizeExperimentResponse> Summarize(const std::string& experiment_id,
                                                            absl::string_view select);

  // These trials changed state in the last commit. Called after each commit, by one thread.
  void Update(const std::string& experiment_id, const absl::btree_set<int64_t>& trials);

  // Evicts a summary that became wrong: the experiment was deleted, or has other trials.
  void Forget(const std::string& experiment_id);
  // Evicts all summaries: after a failed commit the store may differ from what was published.
  void ForgetAll();

 private:
  // A trial as it is in the store now.
  struct Change {
    TrialRecord trial;
    // Set for a trial that succeeded. The accuracies are the final ones.
    v1::LengthAccuracies accuracies;
    v1::Outcome outcome;
  };
  struct Held {
    platform::Mutex build_mutex;  // held while building; others wait
    platform::Mutex mutex;
    bool ready ABSL_GUARDED_BY(mutex) = false;
    ExperimentSummary summary ABSL_GUARDED_BY(mutex);
    // Changes committed while the summary is being built.
    std::vector<Change> missed ABSL_GUARDED_BY(mutex);
  };

  // Null if no summary of the experiment is cached.
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
  std::list<std::string> asked_ ABSL_GUARDED_BY(mutex_);  // keys of held_, newest first
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SUMMARIES_H_
