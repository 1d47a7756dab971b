// The coordinator's commands that submit trials. What takes long, resolving a specification, is
// done on the caller's thread; the coordinator's checks that nothing has changed meanwhile.
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/coordination/coordinator_impl.h"
#include "server/coordination/messages.h"
#include "specification/reevaluation.h"

namespace lengthwise::server {
namespace {

using Seeds = google::protobuf::RepeatedField<uint64_t>;

// The hash of a message, the same for equal ones. `kind` keeps those of different requests apart.
std::string Fingerprint(absl::string_view kind, const google::protobuf::Message& request) {
  std::string bytes(kind);
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  return platform::Sha256Hex(bytes);
}

std::string OwnerOf(const std::string& owner) { return owner.empty() ? "anonymous" : owner; }

// Appends the seeds that are not there yet.
void AppendNew(const Seeds& seeds, Seeds& all) {
  absl::flat_hash_set<uint64_t> known(all.begin(), all.end());
  for (const uint64_t seed : seeds) {
    if (known.insert(seed).second) all.Add(seed);
  }
}

}  // namespace

void CoordinatorImpl::CreateExperiment(v1::CreateExperimentRequest request,
                                       Callback<v1::CreateExperimentResponse> done) {
  using Response = v1::CreateExperimentResponse;
  absl::StatusOr<specification::Grid> grid = dependencies_.resolve(request);
  if (!grid.ok()) {
    return Post<Response>(
        0, [status = grid.status()]() -> absl::StatusOr<Response> { return status; },
        std::move(done));
  }
  auto submission = std::make_shared<Submission>();
  submission->grid = *std::move(grid);
  ExperimentRecord& record = submission->experiment;
  const v1::ExperimentSpecification& specification = submission->grid.specification;
  record.name = specification.name();
  record.owner = OwnerOf(request.owner());
  record.priority = specification.priority();
  record.specification = specification.SerializeAsString();
  record.create_time = dependencies_.clock.wall();
  if (request.has_specification_text()) {
    record.source = request.specification_text().SerializeAsString();
  }
  record.request_id = request.request_id();
  const bool validate_only = request.validate_only();
  request.clear_request_id();
  request.clear_validate_only();
  record.request_fingerprint = Fingerprint("", request);
  const int64_t bytes = static_cast<int64_t>(submission->grid.trials.size() * sizeof(TrialRecord));
  Post<Response>(
      bytes,
      [this, submission, validate_only] {
        return validate_only ? Engine::Preview(*submission) : engine_.CreateExperiment(*submission);
      },
      std::move(done));
}

absl::StatusOr<Extension> CoordinatorImpl::PrepareExtension(
    const v1::ExtendExperimentRequest& request, const ExperimentRecord& record,
    absl::string_view store) {
  ASSIGN_OR_RETURN(const v1::ExperimentSpecification stored, ToSpecification(record, store));
  const v1::ExperimentSpecification& base = stored;
  if (!base.evaluated_trial().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(request.name(), " evaluates a stored model and has no seeds to add; extend ",
                     base.evaluated_trial().substr(0, base.evaluated_trial().find("/trials/"))));
  }
  v1::CreateExperimentRequest extended;
  v1::ExperimentSpecification& specification = *extended.mutable_specification();
  specification = base;
  AppendNew(request.seeds(), *specification.mutable_seeds());
  AppendNew(request.weight_seeds(), *specification.mutable_weight_seeds());
  AppendNew(request.data_seeds(), *specification.mutable_data_seeds());
  Extension extension;
  extension.base = record.specification;
  const bool changed = specification.seeds_size() > base.seeds_size() ||
                       specification.weight_seeds_size() > base.weight_seeds_size() ||
                       specification.data_seeds_size() > base.data_seeds_size();
  if (!changed) return extension;
  ASSIGN_OR_RETURN(specification::Grid grid, dependencies_.resolve(extended));
  extension.specification = grid.specification.SerializeAsString();
  // The other axes are the same, so a trial is new if its pair of seeds is.
  const auto set = [](const Seeds& seeds) {
    return absl::flat_hash_set<uint64_t>(seeds.begin(), seeds.end());
  };
  const bool paired = base.seeds_size() > 0;
  const auto weights = set(paired ? base.seeds() : base.weight_seeds());
  const auto data = set(paired ? base.seeds() : base.data_seeds());
  for (specification::GridTrial& trial : grid.trials) {
    const bool known = weights.contains(trial.weight_seed) && data.contains(trial.data_seed);
    if (!known) extension.added.push_back(std::move(trial));
  }
  return extension;
}

void CoordinatorImpl::ExtendExperiment(v1::ExtendExperimentRequest request,
                                       Callback<v1::ExtendExperimentResponse> done) {
  using Response = v1::ExtendExperimentResponse;
  const auto prepare = [&]() -> absl::StatusOr<std::pair<std::string, Extension>> {
    ASSIGN_OR_RETURN(const auto reader, storage_->Read());
    ASSIGN_OR_RETURN(const ExperimentRecord record, FindExperiment(*reader, request.name()));
    ASSIGN_OR_RETURN(Extension extension, PrepareExtension(request, record, reader->name()));
    return std::pair(record.id, std::move(extension));
  };
  auto prepared = prepare();
  if (!prepared.ok()) {
    return Post<Response>(
        0, [status = prepared.status()]() -> absl::StatusOr<Response> { return status; },
        std::move(done));
  }
  const auto extension = std::make_shared<Extension>(std::move(prepared->second));
  const int64_t bytes = static_cast<int64_t>(extension->added.size() * sizeof(TrialRecord));
  Post<Response>(
      bytes,
      [this, id = prepared->first, extension, request = std::move(request)] {
        return engine_.ExtendExperiment(
            id, std::move(*extension), [&](const ExperimentRecord& record) {
              return PrepareExtension(request, record, storage_->writer().name());
            });
      },
      std::move(done));
}

absl::StatusOr<Submission> CoordinatorImpl::PrepareEvaluation(
    const v1::EvaluateTrialRequest& request) {
  Submission submission;
  ExperimentRecord& record = submission.experiment;
  record.owner = OwnerOf(request.owner());
  record.create_time = dependencies_.clock.wall();
  record.request_id = request.request_id();
  v1::EvaluateTrialRequest asked = request;
  asked.clear_request_id();
  record.request_fingerprint = Fingerprint("EvaluateTrial\n", asked);

  ASSIGN_OR_RETURN(const auto reader, storage_->Read());
  if (!record.request_id.empty()) {
    // A repeated request needs no trial that can be evaluated, which may be gone by now.
    ASSIGN_OR_RETURN(const auto known, reader->FindRequest(record.request_id));
    if (known.has_value()) return submission;
    ASSIGN_OR_RETURN(const auto deleted, reader->FindDeletedRequest(record.request_id));
    if (deleted.has_value()) return submission;
  }
  ASSIGN_OR_RETURN(const TrialRecord trial, FindTrial(*reader, request.trial()));
  ASSIGN_OR_RETURN(const auto pack, reader->FindPack(trial.pack));
  ASSIGN_OR_RETURN(const auto experiment, reader->FindExperiment(trial.experiment_id));
  ASSIGN_OR_RETURN(const auto source, ToTrialSpecification(trial, *pack, reader->name()));
  ASSIGN_OR_RETURN(const auto base, ToSpecification(*experiment, reader->name()));
  v1::CreateExperimentRequest resolved;
  *resolved.mutable_specification() =
      specification::ReevaluationSpecification(base, source, request.evaluation());
  ASSIGN_OR_RETURN(specification::Grid grid, dependencies_.resolve(resolved));
  submission.grid = std::move(grid);
  specification::MakeReevaluation(source, request.trial(), submission.grid);
  record.name = submission.grid.specification.name();
  record.priority = submission.grid.specification.priority();
  record.specification = submission.grid.specification.SerializeAsString();

  // The engine checks it, too; reading a large file is better done here.
  ASSIGN_OR_RETURN(const auto checkpoints,
                   reader->NewestEvents(trial.key, v1::Event::kCheckpoint, 1));
  for (const EventRecord& checkpoint : checkpoints) {
    const auto message = ToCheckpoint(checkpoint, reader->name());
    if (!message.ok()) continue;
    artifacts_
        ->Verify(
            {.experiment = trial.experiment_id, .trial = trial.id, .sha256 = message->sha256()})
        .IgnoreError();
  }
  return submission;
}

void CoordinatorImpl::EvaluateTrial(v1::EvaluateTrialRequest request,
                                    Callback<v1::CreateExperimentResponse> done) {
  const auto submission = std::make_shared<absl::StatusOr<Submission>>(PrepareEvaluation(request));
  Post<v1::CreateExperimentResponse>(
      0,
      [this, submission]() -> absl::StatusOr<v1::CreateExperimentResponse> {
        if (!submission->ok()) return submission->status();
        return engine_.EvaluateTrial(**submission);
      },
      std::move(done));
}

}  // namespace lengthwise::server
