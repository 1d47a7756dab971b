#include "server/coordination/messages.h"

#include <string>
#include <utility>

#include "google/protobuf/util/time_util.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  return google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(time));
}

const std::string& LabelOf(const v1::Component& component) {
  return component.label().empty() ? component.name() : component.label();
}

}  // namespace

v1::Experiment ToExperiment(const ExperimentRecord& record) {
  v1::Experiment experiment;
  if (!record.id.empty()) experiment.set_name(ExperimentName(record.id));
  experiment.mutable_specification()->ParseFromString(record.specification);
  experiment.set_owner(record.owner);
  *experiment.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.end_time != NoTime()) *experiment.mutable_end_time() = ToTimestamp(record.end_time);
  *experiment.mutable_trials() = record.counts;
  return experiment;
}

PackRecord ToPack(const specification::GridPack& pack) {
  const v1::TrialSpecification& shared = pack.specification;
  PackRecord record;
  record.pack_key = pack.key;
  record.specification = shared.SerializeAsString();
  record.task = LabelOf(shared.task());
  record.network = LabelOf(shared.network());
  record.encoding = LabelOf(shared.encoding());
  return record;
}

v1::TrialSpecification ToTrialSpecification(const TrialRecord& trial, const PackRecord& pack) {
  v1::TrialSpecification specification;
  specification.ParseFromString(pack.specification);
  specification.set_learning_rate(trial.learning_rate);
  specification.set_weight_seed(trial.weight_seed);
  specification.set_data_seed(trial.data_seed);
  return specification;
}

v1::Trial ToTrial(const TrialRecord& record, const PackRecord& pack) {
  v1::Trial trial;
  trial.set_name(TrialName(record.experiment_id, record.id));
  *trial.mutable_specification() = ToTrialSpecification(record, pack);
  trial.set_state(record.state);
  trial.set_reason(record.reason);
  trial.set_attempt(record.attempt);
  trial.set_worker(record.worker);
  trial.set_checkpoint_step(record.checkpoint_step);
  *trial.mutable_create_time() = ToTimestamp(record.create_time);
  if (record.start_time != NoTime()) *trial.mutable_start_time() = ToTimestamp(record.start_time);
  if (record.end_time != NoTime()) *trial.mutable_end_time() = ToTimestamp(record.end_time);
  if (!record.outcome.empty()) trial.mutable_outcome()->ParseFromString(record.outcome);
  trial.set_index(record.index);
  return trial;
}

v1::Event ToEvent(const EventRecord& record, absl::string_view experiment_id,
                  absl::string_view trial_id) {
  v1::Event event;
  event.ParseFromString(record.payload);
  event.set_position(record.position);
  event.set_trial(TrialName(experiment_id, trial_id));
  event.set_attempt(record.attempt);
  event.set_sequence(record.sequence);
  event.set_step(record.step);
  return event;
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

}  // namespace lengthwise::server
