#include "server/coordination/submissions.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/message_differencer.h"
#include "platform/failpoint.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "proto/digest.h"
#include "proto/trial_counts.h"
#include "rpc/status.h"
#include "server/coordination/names.h"
#include "specification/checks.h"
#include "specification/examples.h"
#include "specification/expand.h"

namespace lengthwise::server {
namespace {

using Seeds = google::protobuf::RepeatedField<uint64_t>;

std::string OwnerOf(const std::string& owner) { return owner.empty() ? "anonymous" : owner; }

// Appends the seeds that `all` does not contain yet.
void AppendNew(const Seeds& seeds, Seeds& all) {
  absl::flat_hash_set<uint64_t> known(all.begin(), all.end());
  for (const uint64_t seed : seeds) {
    if (known.insert(seed).second) all.Add(seed);
  }
}

// Delay that a refused owner is told. A trial's end is not predictable, so holding the call open
// would not help.
constexpr absl::Duration kTryAgain = absl::Minutes(5);

constexpr int kMaxAnsweredIds = 1000;

ArtifactId DataFileId(absl::string_view experiment, const std::string& sha256) {
  return {
      .experiment = std::string(experiment), .trial = std::string(kDataFiles), .sha256 = sha256};
}

// The error names all missing files.
absl::Status CheckUploads(ArtifactStore& artifacts,
                          const v1::ExperimentSpecification& specification) {
  std::vector<std::string> missing;
  for (const specification::DataFile& file : specification::DataFilesOf(specification)) {
    const absl::Status status = artifacts.Verify(DataFileId(kUploads, file.sha256), file.bytes);
    if (!status.ok() && !IsLost(status)) return absl::UnavailableError(status.message());
    if (!status.ok()) missing.push_back(file.sha256);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the server does not have the examples ", absl::StrJoin(missing, ", "),
                   " (train_sha256, test_sha256); upload them first, as `lengthwise submit` does"));
}

int64_t DataBytes(const v1::ExperimentSpecification& specification) {
  int64_t bytes = 0;
  for (const specification::DataFile& file : specification::DataFilesOf(specification)) {
    bytes += file.bytes;
  }
  return bytes;
}

// What makes two resolved specifications one experiment: all but the priority and the contents of
// example files, which later releases describe in more detail. Their hashes stay.
v1::ExperimentSpecification Compared(v1::ExperimentSpecification specification) {
  specification.clear_priority();
  for (v1::Component& task : *specification.mutable_tasks()) {
    task.mutable_parameters()->erase("contents");
  }
  return specification;
}

v1::CreateExperimentResponse MakeResponse(const Submission& submission) {
  v1::CreateExperimentResponse response;
  *response.mutable_experiment() = ToExperiment(submission.experiment, submission.specification);
  absl::flat_hash_set<absl::string_view> packs;
  for (const NewTrial& trial : submission.trials) {
    if (response.trial_ids_size() < kMaxAnsweredIds) response.add_trial_ids(trial.id);
    packs.insert(trial.pack->record.pack_key);
  }
  response.set_trial_count(static_cast<int32_t>(submission.trials.size()));
  response.set_pack_count(static_cast<int32_t>(packs.size()));
  return response;
}

}  // namespace

bool Submission::NeedsCopies() const {
  return !specification.evaluated_trial().empty() ||
         !specification::DataFilesOf(specification).empty();
}

void Submission::Take(specification::Grid grid) {
  specification = std::move(grid.specification);
  trials = ToNewTrials(std::move(grid.trials));
  experiment.name = specification.name();
  experiment.priority = specification.priority();
  experiment.specification = specification.SerializeAsString();
  experiment.retention =
      specification::ParseRetention(specification.retention()).value_or(absl::ZeroDuration());
}

int64_t Submission::bytes() const {
  if (trials.empty()) return 0;
  return BytesOf(trials) +
         static_cast<int64_t>(specification.SpaceUsedLong() + experiment.specification.size() +
                              experiment.source.size());
}

int64_t Extension::bytes() const {
  if (added.empty()) return 0;
  return BytesOf(added) + static_cast<int64_t>(base.size() + specification.size());
}

Submissions::Submissions(GridResolver resolve, int64_t max_unended_trials, BytesCheck check_bytes,
                         Storage& storage, ArtifactStore& artifacts, Ledger& ledger)
    : resolve_(std::move(resolve)),
      max_unended_trials_(max_unended_trials),
      check_bytes_(std::move(check_bytes)),
      storage_(storage),
      artifacts_(artifacts),
      ledger_(ledger),
      store_(ledger.store()) {}

absl::StatusOr<Submission> Submissions::PrepareCreation(v1::CreateExperimentRequest request) const {
  Submission submission;
  ASSIGN_OR_RETURN(specification::Grid grid, resolve_(request));
  submission.Take(std::move(grid));
  ExperimentRecord& record = submission.experiment;
  const v1::ExperimentSpecification& specification = submission.specification;
  if (request.resume() && !request.validate_only()) {
    RETURN_IF_ERROR(FindEarlier(submission));
  }
  // Reading the files here keeps that off the command loop.
  if (!request.validate_only() && submission.resumed.empty()) {
    RETURN_IF_ERROR(CheckUploads(artifacts_, specification));
    submission.room = check_bytes_(OwnerOf(request.owner()), DataBytes(specification));
  }
  record.owner = OwnerOf(request.owner());
  record.create_time = ledger_.WallTime();
  if (request.has_specification_text()) {
    record.source = request.specification_text().SerializeAsString();
  }
  record.request_id = request.request_id();
  submission.validate_only = request.validate_only();
  request.clear_request_id();
  request.clear_validate_only();
  record.request_fingerprint = Digest(request);
  return submission;
}

absl::Status Submissions::FindEarlier(Submission& submission) const {
  const v1::ExperimentSpecification wanted = Compared(submission.specification);
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  for (int64_t before = 0;;) {
    ASSIGN_OR_RETURN(const auto page, reader->ListExperiments(before, "", kExperimentsAtOnce));
    for (const ExperimentRecord& record : page) {  // newest first
      const bool resumes = UnendedTrials(record.counts) > 0;
      const bool repeats = submission.repeats.empty() && record.counts.succeeded() > 0;
      if (record.name != wanted.name() || (!resumes && !repeats)) continue;
      v1::CreateExperimentRequest stored;
      ASSIGN_OR_RETURN(*stored.mutable_specification(), ToSpecification(record, reader->name()));
      const auto grid = resolve_(stored);
      // This release may refuse what an earlier one accepted.
      if (!grid.ok() || !google::protobuf::util::MessageDifferencer::Equals(
                            wanted, Compared(grid->specification))) {
        continue;
      }
      if (resumes) {
        submission.resumed = record.id;
        return absl::OkStatus();
      }
      submission.repeats = ExperimentName(record.id);
    }
    if (page.size() < kExperimentsAtOnce) return absl::OkStatus();
    before = page.back().key;
  }
}

absl::StatusOr<Extension> Submissions::PrepareExtension(
    const v1::ExtendExperimentRequest& request) const {
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const ExperimentRecord record, FindExperiment(*reader, request.name()));
  ASSIGN_OR_RETURN(const v1::ExperimentSpecification base, ToSpecification(record, reader->name()));
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
  extension.experiment = record.id;
  extension.base = record.specification;
  const bool changed = specification.seeds_size() > base.seeds_size() ||
                       specification.weight_seeds_size() > base.weight_seeds_size() ||
                       specification.data_seeds_size() > base.data_seeds_size();
  if (!changed) return extension;
  RETURN_IF_ERROR(check_bytes_(record.owner, 0));
  ASSIGN_OR_RETURN(specification::Grid grid, resolve_(extended));
  extension.specification = grid.specification.SerializeAsString();
  // The other axes are unchanged, so a trial is new if its pair of seeds is new.
  const auto set = [](const Seeds& seeds) {
    return absl::flat_hash_set<uint64_t>(seeds.begin(), seeds.end());
  };
  const bool paired = base.seeds_size() > 0;
  const auto weights = set(paired ? base.seeds() : base.weight_seeds());
  const auto data = set(paired ? base.seeds() : base.data_seeds());
  std::vector<specification::GridTrial> added;
  for (specification::GridTrial& trial : grid.trials) {
    const bool known = weights.contains(trial.weight_seed) && data.contains(trial.data_seed);
    if (!known) added.push_back(std::move(trial));
  }
  extension.added = ToNewTrials(std::move(added));
  return extension;
}

absl::StatusOr<Submission> Submissions::PrepareEvaluation(
    const v1::EvaluateTrialRequest& request) const {
  Submission submission;
  ExperimentRecord& record = submission.experiment;
  record.owner = OwnerOf(request.owner());
  record.create_time = ledger_.WallTime();
  record.request_id = request.request_id();
  v1::EvaluateTrialRequest asked = request;
  asked.clear_request_id();
  // The prefix keeps these fingerprints apart from those of CreateExperiment.
  record.request_fingerprint =
      platform::Sha256Hex(absl::StrCat("EvaluateTrial\n", SerializeDeterministically(asked)));

  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  if (!record.request_id.empty()) {
    // A repeated request must be answered even if its trial was deleted or can no longer be
    // evaluated.
    ASSIGN_OR_RETURN(const auto known, reader->FindRequest(record.request_id));
    if (known.has_value()) return submission;
  }
  ASSIGN_OR_RETURN(const TrialRecord trial, FindTrial(*reader, request.trial()));
  ASSIGN_OR_RETURN(const auto pack, reader->FindPack(trial.pack));
  ASSIGN_OR_RETURN(const auto experiment, reader->FindExperiment(trial.experiment_id));
  ASSIGN_OR_RETURN(const auto source, ToTrialSpecification(trial, *pack, reader->name()));
  ASSIGN_OR_RETURN(const auto base, ToSpecification(*experiment, reader->name()));
  v1::CreateExperimentRequest resolved;
  *resolved.mutable_specification() =
      specification::ReevaluationSpecification(base, source, request.evaluation());
  ASSIGN_OR_RETURN(specification::Grid grid, resolve_(resolved));
  specification::MakeReevaluation(source, request.trial(), grid);
  submission.Take(std::move(grid));

  // CopyFiles copies no file that is known to be damaged. This reads those not verified before.
  ASSIGN_OR_RETURN(const auto checkpoints,
                   reader->NewestEvents(trial.key, v1::Event::kCheckpoint, 1));
  int64_t bytes = DataBytes(submission.specification);
  for (const EventRecord& checkpoint : checkpoints) {
    const auto message = ToCheckpoint(checkpoint, reader->name());
    if (!message.ok()) continue;
    bytes += message->size_bytes();
    artifacts_
        .Verify({.experiment = trial.experiment_id, .trial = trial.id, .sha256 = message->sha256()})
        .IgnoreError();
  }
  for (const specification::DataFile& file : specification::DataFilesOf(submission.specification)) {
    artifacts_.Verify(DataFileId(trial.experiment_id, file.sha256), file.bytes).IgnoreError();
  }
  submission.room = check_bytes_(record.owner, bytes);
  return submission;
}

absl::Status Submissions::CheckQuota(const std::string& owner, int64_t added) {
  const int64_t limit = max_unended_trials_;
  // No owner has more unended trials than the whole server, whose count needs no query.
  if (limit <= 0 || ledger_.scheduler().queued() + ledger_.scheduler().running() + added <= limit) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const int64_t unended, store_.CountUnendedTrials(owner));
  if (unended + added <= limit) return absl::OkStatus();
  return rpc::ExhaustedFor(
      kTryAgain,
      absl::StrCat(
          owner, " has ", unended,
          unended == 1 ? " trial that has not ended, and " : " trials that have not ended, and ",
          added, " more would pass the limit of ", limit,
          "; submit fewer, wait, cancel some, or have the server's --max_unended_trials "
          "raised"));
}

absl::StatusOr<std::optional<v1::CreateExperimentResponse>> Submissions::FindRepeated(
    const ExperimentRecord& submitted) {
  if (submitted.request_id.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<KnownRequest> known,
                   store_.FindRequest(submitted.request_id));
  if (!known.has_value()) return std::nullopt;
  const std::string created = absl::StrCat("request_id: \"", submitted.request_id, "\" created ",
                                           ExperimentName(known->experiment_id));
  if (known->fingerprint != submitted.request_fingerprint) {
    return absl::AlreadyExistsError(
        absl::StrCat(created, " by another request; use a new request_id"));
  }
  if (known->is_deleted) {
    return absl::FailedPreconditionError(
        absl::StrCat(created, ", which was deleted; use a new request_id to create it again"));
  }
  return AnswerOf(known->experiment_id);
}

absl::StatusOr<v1::CreateExperimentResponse> Submissions::AnswerOf(const std::string& id) {
  ASSIGN_OR_RETURN(const ExperimentRecord known, FindExperiment(store_, ExperimentName(id)));
  // From the store, because the experiment may have been extended since.
  ASSIGN_OR_RETURN(const auto trials, store_.ListTrials(known.key, 0, {}, kMaxAnsweredIds));
  ASSIGN_OR_RETURN(const auto packs, store_.PackKeys(known.key));
  ASSIGN_OR_RETURN(v1::Experiment experiment, ToExperiment(known, store_.name()));
  v1::CreateExperimentResponse response;
  *response.mutable_experiment() = std::move(experiment);
  for (const TrialRecord& trial : trials) response.add_trial_ids(trial.id);
  response.set_trial_count(static_cast<int32_t>(AllTrials(known.counts)));
  response.set_pack_count(static_cast<int32_t>(packs.size()));
  return response;
}

absl::Status Submissions::InsertTrials(const ExperimentRecord& experiment,
                                       absl::Span<const NewTrial> trials, int32_t first_index,
                                       absl::flat_hash_map<std::string, int64_t> packs,
                                       absl::string_view reason) {
  int32_t index = first_index;
  const absl::Time now = ledger_.WallTime();
  std::vector<TrialRecord> records;
  records.reserve(trials.size());
  const std::string* shared = nullptr;
  int64_t shared_key = 0;
  for (const NewTrial& added : trials) {
    const NewPack& its = *added.pack;
    const auto [pack, is_new] = packs.try_emplace(its.record.pack_key, 0);
    if (is_new) {
      if (its.shared.get() != shared) {
        shared = its.shared.get();
        ASSIGN_OR_RETURN(shared_key, store_.InsertShared(experiment.key, *shared));
      }
      PackRecord record = its.record;
      record.experiment = experiment.key;
      record.shared = shared_key;
      RETURN_IF_ERROR(store_.InsertPack(record));
      pack->second = record.key;
    }
    TrialRecord& trial = records.emplace_back();
    trial.experiment = experiment.key;
    trial.index = index++;
    trial.id = added.id;
    trial.pack = pack->second;
    trial.learning_rate = added.learning_rate;
    trial.weight_seed = added.weight_seed;
    trial.data_seed = added.data_seed;
    trial.state = v1::QUEUED;
    trial.reason = std::string(reason);
    trial.queue_time = now;
  }
  RETURN_IF_ERROR(store_.InsertTrials(absl::MakeSpan(records)));
  for (size_t i = 0; i < trials.size(); ++i) {
    const NewPack& pack = *trials[i].pack;
    ledger_.scheduler().Add({.key = records[i].key, .pack = records[i].pack},
                            {.priority = experiment.priority,
                             .owner = experiment.owner,
                             .shape = pack.record.pack_key,
                             .experiment = experiment.id,
                             .most = pack.most_in_lease});
  }
  return absl::OkStatus();
}

absl::Status Submissions::AnnounceCopies(Submission& submission) {
  ExperimentRecord& record = submission.experiment;
  ASSIGN_OR_RETURN(record.id, store_.ReserveExperimentId(record.name));
  submission.copies = artifacts_.Hold(record.id);
  return store_.InsertSweep({.experiment = record.id});
}

absl::Status Submissions::CopyFiles(const Submission& submission) const {
  const std::optional<StoredModel>& model = submission.model;
  const std::string& id = submission.experiment.id;
  if (model.has_value()) {
    const absl::Status copied = artifacts_.Copy(model->artifact, id, submission.trials.front().id);
    if (IsLost(copied)) {
      return absl::DataLossError(absl::StrCat("the model of ",
                                              submission.specification.evaluated_trial(),
                                              " cannot be used: ", copied.message()));
    }
    if (!copied.ok()) {
      return absl::UnavailableError(absl::StrCat("cannot copy the model: ", copied.message()));
    }
    LENGTHWISE_FAILPOINT("engine.evaluation.copied");
  }
  const std::string from = model.has_value() ? model->artifact.experiment : std::string(kUploads);
  for (const specification::DataFile& file : specification::DataFilesOf(submission.specification)) {
    const absl::Status copied =
        artifacts_.Copy(DataFileId(from, file.sha256), id, std::string(kDataFiles));
    if (copied.ok()) continue;
    if (!IsLost(copied)) {
      return absl::UnavailableError(absl::StrCat("cannot store the examples: ", copied.message()));
    }
    return absl::FailedPreconditionError(absl::StrCat("the server does not have the examples ",
                                                      file.sha256, ": ", copied.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<v1::CreateExperimentResponse>> Submissions::Create(
    Submission& submission) {
  ExperimentRecord& record = submission.experiment;
  const v1::ExperimentSpecification& specification = submission.specification;
  const auto added = static_cast<int64_t>(submission.trials.size());
  record.counts.set_queued(static_cast<int32_t>(added));
  if (submission.validate_only) return MakeResponse(submission);
  // Checked in the transaction that inserts, so that two calls with one request_id cannot both
  // create an experiment.
  ASSIGN_OR_RETURN(std::optional<v1::CreateExperimentResponse> repeated, FindRepeated(record));
  if (repeated.has_value()) return repeated;
  if (!submission.resumed.empty()) {
    ASSIGN_OR_RETURN(v1::CreateExperimentResponse response, AnswerOf(submission.resumed));
    response.set_resumed(true);
    return response;
  }
  const std::string& evaluated = specification.evaluated_trial();
  std::optional<StoredModel> model;
  if (!evaluated.empty()) {
    ASSIGN_OR_RETURN(model, FindModel(evaluated));
  }
  RETURN_IF_ERROR(CheckQuota(record.owner, added));
  RETURN_IF_ERROR(submission.room);
  if (submission.NeedsCopies() && record.id.empty()) {
    submission.model = std::move(model);
    RETURN_IF_ERROR(AnnounceCopies(submission));
    LENGTHWISE_FAILPOINT("engine.evaluation.create");
    return std::nullopt;
  }
  if (model.has_value() && model->artifact != submission.model->artifact) {
    return absl::AbortedError(
        absl::StrCat(evaluated, " got another model while this one was copied; evaluate it again"));
  }
  RETURN_IF_ERROR(submission.copied);
  RETURN_IF_ERROR(store_.InsertExperiment(record));
  RETURN_IF_ERROR(InsertTrials(
      record, submission.trials, 0, {},
      absl::StrCat(evaluated.empty() ? "" : absl::StrCat("evaluation of ", evaluated, ", "),
                   "submitted by ", record.owner)));
  if (model.has_value()) {
    // The trial looks as if it had been trained up to this step, so leases, resumption and
    // retention need no special case.
    ASSIGN_OR_RETURN(std::vector<TrialRecord> trials, store_.ListTrials(record.key, 0, {}, 1));
    v1::Event event;
    event.set_step(model->step);
    *event.mutable_checkpoint() = model->checkpoint;
    RETURN_IF_ERROR(ledger_.Append(trials.front(), std::move(event)));
    RETURN_IF_ERROR(ledger_.StoreCheckpoint(trials.front(), model->step));
  }
  LENGTHWISE_FAILPOINT("engine.experiment.create");
  v1::CreateExperimentResponse response = MakeResponse(submission);
  response.set_repeats(submission.repeats);
  return response;
}

absl::StatusOr<v1::ExtendExperimentResponse> Submissions::Extend(const Extension& extension) {
  const std::string id = extension.experiment;
  ASSIGN_OR_RETURN(ExperimentRecord record, FindExperiment(store_, ExperimentName(id)));
  if (record.specification != extension.base) {
    return absl::AbortedError(absl::StrCat("another extension of ", id, " came in between"));
  }
  v1::ExtendExperimentResponse response;
  response.set_added_trials(static_cast<int32_t>(extension.added.size()));
  if (!extension.added.empty()) {
    RETURN_IF_ERROR(CheckQuota(record.owner, response.added_trials()));
    const auto first_index = static_cast<int32_t>(AllTrials(record.counts));
    record.specification = extension.specification;
    RETURN_IF_ERROR(store_.ExtendExperiment(record, response.added_trials()));
    ASSIGN_OR_RETURN(auto keys, store_.PackKeys(record.key));
    RETURN_IF_ERROR(
        InsertTrials(record, extension.added, first_index, std::move(keys), "added with its seed"));
    ledger_.effects().experiments.insert(id);
    ledger_.effects().reshaped.insert(id);
    ASSIGN_OR_RETURN(record, FindExperiment(store_, ExperimentName(id)));
  }
  ASSIGN_OR_RETURN(*response.mutable_experiment(), ToExperiment(record, store_.name()));
  return response;
}

absl::StatusOr<StoredModel> Submissions::FindModel(absl::string_view trial_name) {
  ASSIGN_OR_RETURN(const TrialRecord trial, FindTrial(store_, trial_name));
  if (trial.state != v1::SUCCEEDED) {
    return absl::FailedPreconditionError(
        absl::StrCat(trial_name, " is ", v1::TrialState_Name(trial.state),
                     "; only the model of a trial that has succeeded can be evaluated"));
  }
  ASSIGN_OR_RETURN(std::optional<StoredModel> model, FindStoredModel(store_, trial));
  if (model.has_value()) return *std::move(model);
  return absl::FailedPreconditionError(absl::StrCat(trial_name, " stored no model"));
}

}  // namespace lengthwise::server
