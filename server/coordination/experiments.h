// Experiments: users' operations on existing experiments: cancel, retry, delete.
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

// Progress of a command about many trials. Each call handles one part in a transaction of its own,
// so that other commands do not wait for the whole.
struct Parts {
  // Trials in a part. Chosen so that a part takes a few milliseconds.
  size_t trials_at_once = 200;
  // Keys of all trials of the command. Set by the first part.
  std::optional<std::vector<int64_t>> trials;
  // Index in `trials` of the first trial that is not done.
  size_t next = 0;
  // Number of trials changed so far.
  int32_t changed = 0;

  // Returns the trials of the next part.
  absl::Span<const int64_t> Take() {
    const auto part = absl::MakeConstSpan(*trials).subspan(next, trials_at_once);
    next += part.size();
    return part;
  }
  bool AtEnd() const { return next == trials->size(); }
};

// Not thread-safe: belongs to the command loop. `caller` is the user recorded in trials' histories;
// empty: the experiment's owner. Errors are those that the rpcs document; on an error the call has
// changed nothing, but earlier parts of its command stay.
class Experiments {
 public:
  // All references must outlive it.
  Experiments(Ledger& ledger, Submissions& submissions);

  // nullopt: more parts are left, for later transactions.
  absl::StatusOr<std::optional<v1::Experiment>> Cancel(const v1::CancelExperimentRequest& request,
                                                       const std::string& caller, Parts& parts);
  // The states of `request` are FAILED, CANCELLED or both (CheckRetryTrials).
  absl::StatusOr<std::optional<v1::RetryTrialsResponse>> RetryTrials(
      const v1::RetryTrialsRequest& request, const std::string& caller, Parts& parts);
  absl::StatusOr<v1::DeleteExperimentResponse> Delete(const v1::DeleteExperimentRequest& request);
  absl::StatusOr<v1::Experiment> ChangeOwner(const v1::ChangeOwnerRequest& request);
  absl::StatusOr<v1::Trial> CancelTrial(const v1::CancelTrialRequest& request,
                                        const std::string& caller);

 private:
  // Keys of the trials that ended in one of the requested states: all of an experiment, or
  // `trial_id` if it is not empty.
  absl::StatusOr<std::vector<int64_t>> FindEnded(const v1::RetryTrialsRequest& request,
                                                 const ExperimentRecord& experiment,
                                                 const std::string& trial_id);

  Ledger& ledger_;
  StorageWriter& store_;
  Submissions& submissions_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EXPERIMENTS_H_
