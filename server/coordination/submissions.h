// Submissions: adds trials by creating an experiment, extending one, or evaluating a stored model
// again.
//
// Each takes two steps. Prepare... runs on any thread: it reads committed state and resolves the
// specification into a grid, which is slow. The second step runs on the command loop: it checks
// that nothing has changed in between, and inserts. Files are copied on the first thread, between
// two calls of Create.
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
#include "server/coordination/messages.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"
#include "specification/resolve.h"

namespace lengthwise::server {

// Resolves a request's specification into a grid. Thread-safe.
using GridResolver =
    std::function<absl::StatusOr<specification::Grid>(const v1::CreateExperimentRequest&)>;

// Checks that an owner may have more bytes on the disk. Thread-safe. RESOURCE_EXHAUSTED.
using BytesCheck = std::function<absl::Status(const std::string& owner, int64_t added)>;

// A resolved grid that waits to be inserted.
struct Submission {
  // Complete except for key, id and counts.
  ExperimentRecord experiment;
  v1::ExperimentSpecification specification;
  std::vector<NewTrial> trials;
  // Only answer with what would be created.
  bool validate_only = false;
  // Why the owner may not store more (BytesCheck). OK if it may.
  absl::Status room;
  // Id of the experiment to resume instead, and name of one that this one repeats
  // (CreateExperimentRequest.resume).
  std::string resumed;
  std::string repeats;
  // The model that the experiment evaluates, if any, as the first Create found it.
  std::optional<StoredModel> model;
  // Keeps the files that are copied for the experiment. Once it is released, the sweeper deletes
  // them if there is no experiment.
  std::shared_ptr<NameLocks::Lock> copies;
  // Result of CopyFiles.
  absl::Status copied;

  // Sets specification and trials, and the record's fields that follow from them.
  void Take(specification::Grid grid);
  // Approximate memory held while queued, in bytes. 0 for one that stores nothing.
  int64_t bytes() const;
  // True if the experiment evaluates a model or has files of examples.
  bool NeedsCopies() const;
};

// Resolved trials that wait to be added to an experiment.
struct Extension {
  // Id of the experiment.
  std::string experiment;
  // The experiment's specification before the extension, and after it.
  std::string base;
  std::string specification;
  std::vector<NewTrial> added;

  // As Submission::bytes.
  int64_t bytes() const;
};

// The Prepare functions and CopyFiles are thread-safe; the others belong to the command loop.
// Errors are those that the rpcs document.
class Submissions {
 public:
  // All references must outlive it. `max_unended_trials` is the maximum number of queued and
  // running trials of one owner; 0: no limit. The Prepare functions call `check_bytes`.
  Submissions(GridResolver resolve, int64_t max_unended_trials, BytesCheck check_bytes,
              Storage& storage, ArtifactStore& artifacts, Ledger& ledger);

  absl::StatusOr<Submission> PrepareCreation(v1::CreateExperimentRequest request) const;
  absl::StatusOr<Extension> PrepareExtension(const v1::ExtendExperimentRequest& request) const;
  // The submission has one trial. It has none if the request id is known, because the request can
  // only be a repetition.
  absl::StatusOr<Submission> PrepareEvaluation(const v1::EvaluateTrialRequest& request) const;

  // A submission that needs copies of files takes two transactions, of one call each
  // (Core::Submit). nullopt after the first, which ensures that the copies are swept if the
  // submission fails or the server dies. `copied` is set in between: the second returns its error,
  // unless the request is a repetition or the evaluated trial is gone.
  absl::StatusOr<std::optional<v1::CreateExperimentResponse>> Create(Submission& submission);
  // Gives the experiment the model that it evaluates, if any, and the files of examples that its
  // tasks name, durably. Blocks while the store does not answer.
  absl::Status CopyFiles(const Submission& submission) const;
  // ABORTED if another extension was applied since it was prepared. Prepare it again then, which
  // takes too long for the loop.
  absl::StatusOr<v1::ExtendExperimentResponse> Extend(const Extension& extension);

  // RESOURCE_EXHAUSTED with a google.rpc.RetryInfo if `added` more trials exceed the owner's limit.
  absl::Status CheckQuota(const std::string& owner, int64_t added);

 private:
  // Sets what earlier experiments of the same specification there are.
  absl::Status FindEarlier(Submission& submission) const;
  // The answer about a stored experiment.
  absl::StatusOr<v1::CreateExperimentResponse> AnswerOf(const std::string& id);
  // Returns what the first request with the submission's id created; nullopt if this is the first.
  // ALREADY_EXISTS if the first request asked for something else.
  absl::StatusOr<std::optional<v1::CreateExperimentResponse>> FindRepeated(
      const ExperimentRecord& submitted);
  // Inserts and queues trials, with indices from `first_index` on, and those of their packs that
  // are not in `packs` (keys by pack key).
  absl::Status InsertTrials(const ExperimentRecord& experiment, absl::Span<const NewTrial> trials,
                            int32_t first_index, absl::flat_hash_map<std::string, int64_t> packs,
                            absl::string_view reason);
  // Reserves the experiment's id and announces copies to the sweeper.
  absl::Status AnnounceCopies(Submission& submission);
  // The checkpoint of a trial that succeeded. NOT_FOUND, FAILED_PRECONDITION.
  absl::StatusOr<StoredModel> FindModel(absl::string_view trial_name);

  const GridResolver resolve_;
  const int64_t max_unended_trials_;
  const BytesCheck check_bytes_;
  Storage& storage_;
  ArtifactStore& artifacts_;
  Ledger& ledger_;
  StorageWriter& store_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SUBMISSIONS_H_
