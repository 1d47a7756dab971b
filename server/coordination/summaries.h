// Summaries: a cache of the summaries of recently queried experiments. The first query of an
// experiment reads all its trials, a later one those that have changed since the one before.
#ifndef LENGTHWISE_SERVER_COORDINATION_SUMMARIES_H_
#define LENGTHWISE_SERVER_COORDINATION_SUMMARIES_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/btree_set.h"
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

  // `storage` must outlive it.
  explicit Summaries(Storage& storage) : storage_(storage) {}

  // The answer is at least as new as the last Update before the call; it has no heading. NOT_FOUND.
  absl::StatusOr<v1::SummarizeExperimentResponse> Summarize(const std::string& experiment_id,
                                                            absl::string_view select);

  // These trials changed state in the last commit. Called after each commit.
  void Update(const std::string& experiment_id, const absl::btree_set<int64_t>& trials);

  // Evicts a summary that became wrong: the experiment was deleted, or has other trials.
  void Forget(const std::string& experiment_id);
  // Evicts all summaries: after a failed commit the store may differ from what was published.
  void ForgetAll();

 private:
  struct Held {
    std::string experiment_id;
    // Keys of trials that have changed since the summary read them. Guarded by Summaries::mutex_.
    absl::btree_set<int64_t> changed;
    platform::Mutex mutex;  // held while reading; other queries wait
    // Absent until it is built, and after a failure.
    std::optional<ExperimentSummary> summary ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<Held> FindOrAdd(const std::string& experiment_id);
  // Brings the summary up to date. `changed`: the trials that it has not read since they changed.
  absl::Status Refresh(const std::string& experiment_id, const absl::btree_set<int64_t>& changed,
                       std::optional<ExperimentSummary>& summary);

  Storage& storage_;
  platform::Mutex mutex_;
  std::list<std::shared_ptr<Held>> held_ ABSL_GUARDED_BY(mutex_);  // the last asked for first
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SUMMARIES_H_
