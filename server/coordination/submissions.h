// New trials: experiments that are created or extended, and stored models that are evaluated again.
//
// Each comes in two steps. Prepare... runs on any thread: it resolves the specification into a
// grid, which takes long, and reads what is committed. The other runs on the command loop, checks
// that nothing has changed since, and inserts.
#ifndef LENGTHWISE_SERVER_COORDINATION_SUBMISSIONS_H_
#define LENGTHWISE_SERVER_COORDINATION_SUBMISSIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/experiment_service.pb.h"
#include "server/coordination/ledger.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"
#include "specification/resolve.h"

namespace lengthwise::server {

// Makes a grid of a request's source. Thread-safe.
using GridResolver =
    std::function<absl::StatusOr<specification::Grid>(const v1::CreateExperimentRequest&)>;

// A grid on its way into the store.
struct Submission {
  // All but key, id, counts.
  ExperimentRecord experiment;
  specification::Grid grid;
  // Answer what would be created, and create nothing.
  bool validate_only = false;

  // What it holds in memory while it waits, roughly.
  int64_t bytes() const { return static_cast<int64_t>(grid.trials.size() * sizeof(TrialRecord)); }
};

// More trials on their way into an experiment.
struct Extension {
  v1::ExtendExperimentRequest request;
  // Id of the experiment.
  std::string experiment;
  // The experiment's specification when this was made, and the one with the trials in it.
  std::string base;
  std::string specification;
  std::vector<specification::GridTrial> added;

  int64_t bytes() const { return static_cast<int64_t>(added.size() * sizeof(TrialRecord)); }
};

// The Prepare functions are thread-safe; the others belong to the command loop. Errors are those
// that the rpcs document.
class Submissions {
 public:
  // All must outlive it. `max_unended_trials` is of one owner; 0 for no limit.
  Submissions(GridResolver resolve, int64_t max_unended_trials, Storage& storage,
              ArtifactStore& artifacts, Ledger& ledger);

  absl::StatusOr<Submission> PrepareCreation(v1::CreateExperimentRequest request) const;
  absl::StatusOr<Extension> PrepareExtension(const v1::ExtendExperimentRequest& request) const;
  // The submission has one trial, or none, if it can only be the repetition of a request.
  absl::StatusOr<Submission> PrepareEvaluation(const v1::EvaluateTrialRequest& request) const;

  absl::StatusOr<v1::CreateExperimentResponse> Create(const Submission& submission);
  // Prepares the extension again where another one came between.
  absl::StatusOr<v1::ExtendExperimentResponse> Extend(Extension extension);
  absl::StatusOr<v1::CreateExperimentResponse> Evaluate(const Submission& submission);

  // RESOURCE_EXHAUSTED with a google.rpc.RetryInfo where `added` trials more are too many for an
  // owner.
  absl::Status CheckQuota(const std::string& owner, int64_t added);

 private:
  absl::StatusOr<Extension> PrepareExtension(const v1::ExtendExperimentRequest& request,
                                             const ExperimentRecord& record,
                                             absl::string_view store) const;
  // What the first request with the submission's id created; nullopt when this is the first.
  // ALREADY_EXISTS: it asked for something else.
  absl::StatusOr<std::optional<v1::CreateExperimentResponse>> FindRepeated(
      const ExperimentRecord& submitted);
  // Inserts and queues trials with indices from `first_index` on, and the packs that `packs` (keys
  // by pack key) lacks.
  absl::Status InsertTrials(const ExperimentRecord& experiment,
                            absl::Span<const specification::GridTrial> trials, int32_t first_index,
                            absl::flat_hash_map<std::string, int64_t> packs,
                            absl::string_view reason);
  // Gives a new experiment the files of examples that its tasks name, of another experiment or of
  // kUploads, durably. Afterwards, OK or not, what undoes it is prepared.
  absl::Status CopyData(const std::string& from, const ExperimentRecord& experiment,
                        const v1::ExperimentSpecification& specification);
  // The checkpoint of a trial that has succeeded. NOT_FOUND, FAILED_PRECONDITION.
  struct StoredModel {
    ArtifactId artifact;
    v1::Checkpoint checkpoint;
    int64_t step = 0;
  };
  absl::StatusOr<StoredModel> FindModel(absl::string_view trial_name);

  const GridResolver resolve_;
  const int64_t max_unended_trials_;
  Storage& storage_;
  ArtifactStore& artifacts_;
  Ledger& ledger_;
  StorageWriter& store_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SUBMISSIONS_H_
