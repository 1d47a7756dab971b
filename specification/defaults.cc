#include "specification/defaults.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "specification/components.h"
#include "specification/parse.h"
#include "specification/training_data.h"

namespace lengthwise::specification {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The defaults that the comments of proto/specification.proto document.
constexpr absl::string_view kStatedDefaults = R"yaml(
networks: encoder
seeds: 0
training:
  batch_size: 128
  lengths: 1..40
  optimizer: adam
  schedule: constant
  clip_norm: 1
  schedule_seed: 0
  precision: float32
  stop_after_seconds: 0
  stop_at_accuracy: 0
  examples: 0
evaluation:
  sequences: 500
  every_steps: 0
  seed: 0
)yaml";
constexpr int32_t kDefaultPackedTokens = 2'048;
constexpr int kMostDefaultIntervals = 8;
constexpr int kDefaultProjectedSequences = 30;
constexpr double kDefaultCheckpointSeconds = 600;
constexpr int64_t kDefaultPoints = 100;
constexpr int64_t kMostStepsPerPoint = 100;

void FillParameters(const v1::Component& defaults, v1::Component& component) {
  for (const auto& [name, value] : defaults.parameters()) {
    // `positions` is another word for it.
    if (name == "randomized" && component.parameters().contains("positions")) continue;
    component.mutable_parameters()->insert({name, value});  // does not overwrite
  }
}

void FillAxis(const google::protobuf::RepeatedPtrField<v1::Component>& defaults,
              google::protobuf::RepeatedPtrField<v1::Component>& components) {
  if (components.empty()) components = defaults;
  for (v1::Component& component : components) {
    const auto found = absl::c_find_if(defaults, [&](const v1::Component& candidate) {
      return candidate.name() == component.name();
    });
    if (found != defaults.end()) FillParameters(*found, component);
  }
}

// Moves fields that `message` does not set from `defaults`, at any depth. Skips lists of
// components, which FillAxis merges by name.
void FillFields(Message& defaults, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> moved;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_repeated()) {
      if (!is_message && reflection.FieldSize(message, field) == 0) moved.push_back(field);
    } else if (!field->has_presence() || !reflection.HasField(defaults, field)) {
      // Kept as it is: only the user sets it, or there is no default.
    } else if (!reflection.HasField(message, field)) {
      moved.push_back(field);
    } else if (is_message) {
      Message& from = *reflection.MutableMessage(&defaults, field);
      Message& to = *reflection.MutableMessage(&message, field);
      if (field->message_type() == v1::Component::descriptor()) {
        const auto& component = static_cast<const v1::Component&>(from);
        auto& own = static_cast<v1::Component&>(to);
        if (own.name() == component.name()) FillParameters(component, own);
      } else {
        FillFields(from, to);
      }
    }
  }
  reflection.SwapFields(&defaults, &message, moved);
}

void Fill(const v1::ExperimentSpecification& defaults, v1::ExperimentSpecification& specification) {
  v1::ExperimentSpecification own = defaults;
  const bool has_seeds = specification.seeds_size() > 0 || specification.weight_seeds_size() > 0 ||
                         specification.data_seeds_size() > 0;
  if (has_seeds) {
    own.clear_seeds();
    own.clear_weight_seeds();
    own.clear_data_seeds();
  }
  // Steps and epochs express the same quantity, so setting one replaces the protocol's other.
  if (specification.training().has_epochs()) own.mutable_training()->clear_steps();
  if (specification.training().has_steps()) own.mutable_training()->clear_epochs();
  FillAxis(own.tasks(), *specification.mutable_tasks());
  FillAxis(own.networks(), *specification.mutable_networks());
  FillAxis(own.encodings(), *specification.mutable_encodings());
  FillFields(own, specification);
}

// Returns true if a reading applies to a component: it has the same name and, if the reading sets
// `randomized`, the same value of it.
bool IsMeantFor(const v1::Component& reading, const v1::Component& component) {
  if (reading.name() != component.name()) return false;
  const auto wanted = reading.parameters().find("randomized");
  if (wanted == reading.parameters().end()) return true;
  const auto own = component.parameters().find("randomized");
  return wanted->second.bool_value() ==
         (own != component.parameters().end() && own->second.bool_value());
}

void FillMatching(const google::protobuf::RepeatedPtrField<v1::Component>& readings,
                  google::protobuf::RepeatedPtrField<v1::Component>& components) {
  for (v1::Component& component : components) {
    (void)FoldPositions(component);  // Resolve reports a contradiction
    for (const v1::Component& reading : readings) {
      if (IsMeantFor(reading, component)) FillParameters(reading, component);
    }
  }
}

// Selects at most kMostDefaultIntervals of the sorted lengths, evenly spread, including the first
// and the last.
void FillIntervalLengths(v1::Evaluation& evaluation) {
  if (evaluation.interval_lengths_size() > 0) return;
  const std::set<int32_t> distinct(evaluation.lengths().begin(), evaluation.lengths().end());
  const std::vector<int32_t> lengths(distinct.begin(), distinct.end());
  const int64_t count = static_cast<int64_t>(lengths.size());
  const int64_t wanted = std::min<int64_t>(count, kMostDefaultIntervals);
  for (int64_t i = 0; i < wanted; ++i) {
    const int64_t index = wanted == 1 ? 0 : (i * (count - 1) + (wanted - 1) / 2) / (wanted - 1);
    evaluation.add_interval_lengths(lengths[index]);
  }
}

}  // namespace

void FillCodeOfSeveralLengths(const v1::ExperimentSpecification& readings,
                              const v1::ExperimentSpecification& protocol,
                              v1::ExperimentSpecification& specification) {
  v1::LengthRange lengths = protocol.training().lengths();
  lengths.MergeFrom(specification.training().lengths());
  if (lengths.min() < lengths.max()) Fill(readings, specification);
}

void FillDefaults(const v1::ExperimentSpecification& protocol,
                  v1::ExperimentSpecification& specification) {
  static const v1::ExperimentSpecification& stated =
      *new v1::ExperimentSpecification(MustParse(kStatedDefaults));
  Fill(protocol, specification);
  Fill(stated, specification);
}

void FillCompatibility(const v1::ExperimentSpecification& readings,
                       v1::ExperimentSpecification& specification) {
  FillMatching(readings.networks(), *specification.mutable_networks());
  FillMatching(readings.encodings(), *specification.mutable_encodings());
}

void FillDependent(v1::ExperimentSpecification& specification) {
  v1::Training& training = *specification.mutable_training();
  // The fields may be invalid; CheckFields reports epochs that stay.
  if (training.has_epochs() && training.epochs() >= 1 && training.epochs() <= kMostEpochs) {
    training.set_steps(training.epochs() * StepsPerEpoch(training));
    training.clear_epochs();
  }
  if (!training.has_report_every_steps()) {
    training.set_report_every_steps(
        std::clamp<int64_t>(training.steps() / kDefaultPoints, 1, kMostStepsPerPoint));
  }
  // A specification that sets either field is complete. Specifications resolved before time-based
  // checkpoints existed must keep their bytes, which identify their trials.
  if (!training.has_checkpoint_every_steps() && !training.has_checkpoint_every_seconds()) {
    training.set_checkpoint_every_seconds(kDefaultCheckpointSeconds);
  }
  v1::Evaluation& evaluation = *specification.mutable_evaluation();
  FillIntervalLengths(evaluation);
  if (!evaluation.has_interval_sequences()) {
    evaluation.set_interval_sequences(std::max(1, evaluation.sequences() / 4));
  }
  if (evaluation.has_validation() && !evaluation.validation().has_sequences()) {
    evaluation.mutable_validation()->set_sequences(evaluation.sequences());
  }
  if (!evaluation.has_seen_up_to()) {
    evaluation.set_seen_up_to(specification.training().lengths().max());
  }
  if (!evaluation.attention_lengths().empty() && !evaluation.has_attention_sequences()) {
    evaluation.set_attention_sequences(1);
  }
}

void FillProjection(int32_t fitted_length, v1::ProjectionSettings& projection) {
  if (!projection.has_fitted_length()) projection.set_fitted_length(fitted_length);
  if (projection.lengths_size() == 0) projection.add_lengths(projection.fitted_length());
  if (!projection.has_sequences()) projection.set_sequences(kDefaultProjectedSequences);
}

void FillPacking(v1::Packing& packing) {
  if (!packing.has_tokens()) packing.set_tokens(kDefaultPackedTokens);
  if (!packing.has_answers_only()) packing.set_answers_only(false);
  if (!packing.has_attend_across()) packing.set_attend_across(false);
  if (!packing.has_reset_positions()) packing.set_reset_positions(RestartsPositions(packing));
}

}  // namespace lengthwise::specification
