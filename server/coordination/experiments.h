// What users do with experiments that exist: cancel, retry, delete.
#ifndef LENGTHWISE_SERVER_COORDINATION_EXPERIMENTS_H_
#define LENGTHWISE_SERVER_COORDINATION_EXPERIMENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/experiment_service.pb.h"
#include "server/coordination/ledger.h"
#include "server/coordination/submissions.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// A command about many trials, which others do not wait for: each call is a part of it, in a
// transaction of its own.
struct Parts {
  // Trials of a part: a few milliseconds.
  size_t trials_at_once = 200;
  // Keys of the trials; from the first part on.
  std::optional<std::vector<int64_t>> trials;
  // Place in `trials` of the first that is left.
  size_t next = 0;
  // Trials that were changed.
  int32_t changed = 0;

  // The trials of the next part.
  absl::Span<const int64_t> Take() {
    const auto part = absl::MakeConstSpan(*trials).subspan(next, trials_at_once);
    next += part.size();
    return part;
  }
  bool AtEnd() const { return next == trials->size(); }
};

// Belongs to the command loop. `caller` is who asks, for the histories of trials; empty: the
// experiment's owner. Errors are those that the rpcs document; they leave everything as it was.
class Experiments {
 public:
  // All must outlive it.
  Experiments(Ledger& ledger, Submissions& submissions);

  // nullopt: `parts` are left, for the next transactions.
  absl::StatusOr<std::optional<v1::Experiment>> Cancel(const v1::CancelExperimentRequest& request,
                                                       const std::string& caller, Parts& parts);
  absl::StatusOr<std::optional<v1::RetryTrialsResponse>> RetryTrials(
      const v1::RetryTrialsRequest& request, const std::string& caller, Parts& parts);
  absl::StatusOr<v1::DeleteExperimentResponse> Delete(const v1::DeleteExperimentRequest& request);
  absl::StatusOr<v1::Trial> CancelTrial(const v1::CancelTrialRequest& request,
                                        const std::string& caller);

 private:
  // Keys of the trials that have ended in one of the states: of an experiment, or the one that is
  // named.
  absl::StatusOr<std::vector<int64_t>> FindEnded(const v1::RetryTrialsRequest& request,
                                                 const ExperimentRecord& experiment,
                                                 const std::string& trial_id);

  Ledger& ledger_;
  StorageWriter& store_;
  Submissions& submissions_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EXPERIMENTS_H_
