#include "server/coordination/messages.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "proto/component_label.h"
#include "proto/digest.h"
#include "proto/length_accuracies.h"
#include "proto/timestamps.h"
#include "rpc/transport.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

template <typename... What>
absl::Status Damaged(absl::string_view store, const What&... what) {
  return absl::DataLossError(
      absl::StrCat(store, ": ", what...,
                   " is damaged; delete its experiment, or restore the data directory from a "
                   "backup"));
}

// `shared` is that of another pack, or null.
std::shared_ptr<const NewPack> ToNewPack(const specification::GridPack& pack,
                                         std::shared_ptr<const std::string> shared) {
  const v1::TrialSpecification& whole = pack.specification;
  // Each field is named, because a copy of all would copy the lengths.
  v1::TrialSpecification own, common;
  *own.mutable_task() = whole.task();
  *own.mutable_network() = whole.network();
  *own.mutable_encoding() = whole.encoding();
  own.set_evaluated_trial(whole.evaluated_trial());
  own.set_keep(whole.keep());
  *common.mutable_training() = whole.training();
  *common.mutable_evaluation() = whole.evaluation();
  // Deterministic, so that packs with equal fields have equal bytes.
  std::string bytes = SerializeDeterministically(common);
  if (shared == nullptr || bytes != *shared) {
    shared = std::make_shared<const std::string>(std::move(bytes));
  }
  NewPack made = {.shared = std::move(shared),
                  .most_in_lease = MostInLease(static_cast<int64_t>(whole.ByteSizeLong()))};
  made.record.pack_key = pack.key;
  made.record.specification = own.SerializeAsString();
  made.record.task = LabelOf(own.task());
  made.record.network = LabelOf(own.network());
  made.record.encoding = LabelOf(own.encoding());
  return std::make_shared<const NewPack>(std::move(made));
}

}  // namespace

absl::StatusOr<v1::ExperimentSpecification> ToSpecification(const ExperimentRecord& record,
                                                            absl::string_view store) {
  v1::ExperimentSpecification specification;
  if (!specification.ParseFromString(record.specification)) {
    return Damaged(store, "the specification of ", ExperimentName(record.id));
  }
  return specification;
}

absl::StatusOr<v1::Experiment> ToExperiment(const ExperimentRecord& record,
                                            absl::string_view store) {
  ASSIGN_OR_RETURN(v1::ExperimentSpecification specification, ToSpecification(record, store));
  return ToExperiment(record, std::move(specification));
}

v1::Experiment ToExperiment(const ExperimentRecord& record,
                            v1::ExperimentSpecification specification) {
  v1::Experiment experiment;
  if (!record.id.empty()) experiment.set_name(ExperimentName(record.id));
  *experiment.mutable_specification() = std::move(specification);
  experiment.set_owner(record.owner);
  *experiment.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.end_time != NoTime()) *experiment.mutable_end_time() = ToTimestamp(record.end_time);
  *experiment.mutable_trials() = record.counts;
  return experiment;
}

std::vector<NewTrial> ToNewTrials(std::vector<specification::GridTrial> trials) {
  std::vector<NewTrial> made;
  made.reserve(trials.size());
  // A pack's trials follow one another.
  std::shared_ptr<const specification::GridPack> from;
  std::shared_ptr<const NewPack> pack;
  for (specification::GridTrial& trial : trials) {
    if (trial.pack != from) {
      from = trial.pack;
      pack = ToNewPack(*from, pack == nullptr ? nullptr : pack->shared);
    }
    made.push_back({.id = std::move(trial.id),
                    .learning_rate = trial.learning_rate,
                    .weight_seed = trial.weight_seed,
                    .data_seed = trial.data_seed,
                    .pack = pack});
    trial.pack.reset();
  }
  return made;
}

int64_t BytesOf(absl::Span<const NewTrial> trials) {
  size_t bytes = trials.size() * (sizeof(NewTrial) + sizeof(TrialRecord));
  const NewPack* last = nullptr;
  for (const NewTrial& trial : trials) {
    const NewPack* const pack = trial.pack.get();
    if (pack == last) continue;
    bytes += sizeof(NewPack) + pack->record.specification.size();
    if (last == nullptr || pack->shared != last->shared) bytes += pack->shared->size();
    last = pack;
  }
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<v1::TrialSpecification> ToSharedSpecification(const PackRecord& pack,
                                                             absl::string_view store) {
  v1::TrialSpecification specification;
  if (!specification.ParseFromString(pack.specification)) {
    return Damaged(store, "the specification of pack ", pack.key, " (\"", pack.pack_key, "\")");
  }
  return specification;
}

int32_t MostInLease(int64_t pack_bytes) {
  constexpr int64_t kTrialBytes = 1024;  // its name, seeds and checkpoint
  const int64_t most = rpc::kMaxMessageBytes / (pack_bytes + kTrialBytes);
  return static_cast<int32_t>(std::max<int64_t>(most, 1));
}

absl::StatusOr<v1::TrialSpecification> SharedSpecificationOf(StorageReader& reader, int64_t pack) {
  ASSIGN_OR_RETURN(const std::optional<PackRecord> record, reader.FindPack(pack));
  if (!record.has_value()) return Damaged(reader.name(), "pack ", pack);
  return ToSharedSpecification(*record, reader.name());
}

absl::StatusOr<v1::TrialSpecification> ToTrialSpecification(const TrialRecord& trial,
                                                            const PackRecord& pack,
                                                            absl::string_view store) {
  absl::StatusOr<v1::TrialSpecification> specification = ToSharedSpecification(pack, store);
  if (!specification.ok()) {
    return Damaged(store, "the specification of ", TrialName(trial.experiment_id, trial.id));
  }
  specification->set_learning_rate(trial.learning_rate);
  specification->set_weight_seed(trial.weight_seed);
  specification->set_data_seed(trial.data_seed);
  return specification;
}

absl::StatusOr<v1::Outcome> ToOutcome(const TrialRecord& trial, absl::string_view store) {
  v1::Outcome outcome;
  if (!outcome.ParseFromString(trial.outcome)) {
    return Damaged(store, "the outcome of ", TrialName(trial.experiment_id, trial.id));
  }
  return outcome;
}

absl::StatusOr<v1::Trial> ToTrial(const TrialRecord& record, const PackRecord& pack,
                                  absl::string_view store) {
  ASSIGN_OR_RETURN(v1::TrialSpecification specification, ToTrialSpecification(record, pack, store));
  v1::Trial trial;
  trial.set_name(TrialName(record.experiment_id, record.id));
  *trial.mutable_specification() = std::move(specification);
  trial.set_state(record.state);
  trial.set_reason(record.reason);
  trial.set_attempt(record.attempt);
  trial.set_worker(record.worker);
  trial.set_checkpoint_step(record.checkpoint_step);
  *trial.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.start_time != NoTime()) *trial.mutable_start_time() = ToTimestamp(record.start_time);
  if (record.end_time != NoTime()) *trial.mutable_end_time() = ToTimestamp(record.end_time);
  if (!record.outcome.empty()) {
    ASSIGN_OR_RETURN(*trial.mutable_outcome(), ToOutcome(record, store));
  }
  trial.set_index(record.index);
  for (v1::LengthRange& range :
       TrainedLengths(trial.specification().task(), trial.specification().training())) {
    *trial.add_trained_lengths() = std::move(range);
  }
  return trial;
}

absl::StatusOr<v1::Event> ToEvent(const EventRecord& record, absl::string_view experiment_id,
                                  absl::string_view trial_id, absl::string_view store) {
  v1::Event event;
  // Truncated bytes may still parse, into a message without its fact.
  if (!event.ParseFromString(record.payload) ||
      static_cast<int>(event.fact_case()) != record.kind ||
      !LengthAccuraciesProblem(event.length_accuracies()).empty()) {
    return Damaged(store, "event ", record.position, trial_id.empty() ? "" : " of ",
                   trial_id.empty() ? "" : TrialName(experiment_id, trial_id));
  }
  event.set_position(record.position);
  event.set_trial(TrialName(experiment_id, trial_id));
  event.set_attempt(record.attempt);
  event.set_sequence(record.sequence);
  event.set_step(record.step);
  return event;
}

absl::StatusOr<v1::Event> ReadEvent(StorageReader& reader, const EventRecord& record,
                                    absl::string_view experiment_id, absl::string_view trial_id) {
  ASSIGN_OR_RETURN(v1::Event event, ToEvent(record, experiment_id, trial_id, reader.name()));
  const v1::LengthAccuracies& measured = event.length_accuracies();
  if (measured.lengths().empty() || measured.has_seen_loss() || measured.has_unseen_loss()) {
    return event;
  }
  ASSIGN_OR_RETURN(const std::optional<TrialRecord> trial, reader.FindTrial(record.trial));
  if (!trial.has_value()) return Damaged(reader.name(), "event ", record.position);
  ASSIGN_OR_RETURN(const auto shared, SharedSpecificationOf(reader, trial->pack));
  SetMeans(shared.evaluation().seen_up_to(), *event.mutable_length_accuracies());
  return event;
}

absl::StatusOr<v1::Checkpoint> ToCheckpoint(const EventRecord& record, absl::string_view store) {
  ASSIGN_OR_RETURN(v1::Event event, ToEvent(record, "", "", store));
  return std::move(*event.mutable_checkpoint());
}

EventRecord ToEventRecord(v1::Event event) {
  EventRecord record;
  record.attempt = event.attempt();
  record.sequence = event.sequence();
  record.step = event.step();
  record.kind = static_cast<int>(event.fact_case());
  event.clear_position();
  event.clear_trial();
  event.clear_attempt();
  event.clear_sequence();
  event.clear_step();
  record.payload = event.SerializeAsString();
  return record;
}

absl::StatusOr<ExperimentRecord> FindExperiment(StorageReader& reader, absl::string_view name) {
  ASSIGN_OR_RETURN(const std::string id, ParseExperimentName(name));
  ASSIGN_OR_RETURN(std::optional<ExperimentRecord> found, reader.FindExperiment(id));
  if (!found.has_value()) return absl::NotFoundError(absl::StrCat("there is no ", name));
  return *std::move(found);
}

absl::StatusOr<TrialRecord> FindTrial(StorageReader& reader, absl::string_view name) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseTrialName(name));
  ASSIGN_OR_RETURN(std::optional<TrialRecord> found, reader.FindTrial(path.experiment, path.trial));
  if (!found.has_value()) return absl::NotFoundError(absl::StrCat("there is no ", name));
  return *std::move(found);
}

absl::StatusOr<EventRecord> FindCheckpointEvent(StorageReader& reader, const TrialRecord& trial) {
  if (trial.checkpoint_step == 0) return EventRecord();
  // Newer checkpoints that were passed over because they are lost stay in the history until the
  // next lease.
  ASSIGN_OR_RETURN(const auto events,
                   reader.NewestEvents(trial.key, v1::Event::kCheckpoint, kKeptCheckpoints + 2));
  for (const EventRecord& event : events) {
    if (event.step == trial.checkpoint_step) return event;
  }
  return EventRecord();
}

absl::StatusOr<std::optional<StoredModel>> FindStoredModel(StorageReader& reader,
                                                           const TrialRecord& trial) {
  ASSIGN_OR_RETURN(const EventRecord event, FindCheckpointEvent(reader, trial));
  if (event.position == 0) return std::nullopt;
  StoredModel model;
  ASSIGN_OR_RETURN(model.checkpoint, ToCheckpoint(event, reader.name()));
  model.step = event.step;
  model.artifact = {
      .experiment = trial.experiment_id, .trial = trial.id, .sha256 = model.checkpoint.sha256()};
  return model;
}

}  // namespace lengthwise::server
