#include "client/comparison/experiment_difference.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/comparison/protocol_difference.h"
#include "client/rendering/numbers.h"
#include "google/protobuf/descriptor.h"

namespace lengthwise::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
// Values by path.
using Fields = std::map<std::string, std::string>;
using Components = google::protobuf::RepeatedPtrField<v1::Component>;

void AddComponent(const std::string& path, const v1::Component& component, Fields& fields) {
  fields[path] = component.name();
  for (const auto& [name, value] : component.parameters()) {
    fields[absl::StrCat(path, ".", name)] = FormatParameter(value);
  }
}

// Those whose label the other experiment has, too.
void AddComponents(const std::string& path, const Components& components, const Components& other,
                   Fields& fields) {
  std::set<std::string> labels;
  for (const v1::Component& component : other) labels.insert(component.label());
  for (const v1::Component& component : components) {
    if (labels.count(component.label()) == 0) continue;
    AddComponent(absl::StrCat(path, ".", component.label()), component, fields);
  }
}

std::string FormatScalar(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return FormatCount(reflection.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return FormatCount(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return FormatExact(reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    default:
      return message.ShortDebugString();
  }
}

std::string FormatRepeated(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    std::vector<int32_t> values;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      values.push_back(reflection.GetRepeatedInt32(message, &field, i));
    }
    return FormatLengths(values);
  }
  std::vector<std::string> texts;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    texts.push_back(reflection.GetRepeatedMessage(message, &field, i).ShortDebugString());
  }
  return absl::StrJoin(texts, ", ");
}

// The set fields of training or evaluation, at any depth.
void AddFields(const std::string& path, const Message& message, Fields& fields) {
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string name = absl::StrCat(path, ".", field->name());
    if (field->is_repeated()) {
      fields[name] = FormatRepeated(message, *field);
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      fields[name] = FormatScalar(message, *field);
    } else if (const Message& inner = message.GetReflection()->GetMessage(message, field);
               field->message_type() == v1::Component::descriptor()) {
      AddComponent(name, static_cast<const v1::Component&>(inner), fields);
    } else {
      AddFields(name, inner, fields);
    }
  }
}

std::string FormatSeeds(const google::protobuf::RepeatedField<uint64_t>& seeds) {
  return seeds.size() <= 8 ? absl::StrJoin(seeds, ", ")
                           : absl::StrCat(seeds.size(), " seeds, ", seeds.Get(0), " to ",
                                          seeds.Get(seeds.size() - 1));
}

Fields FieldsOf(const v1::ExperimentSpecification& specification,
                const v1::ExperimentSpecification& other) {
  Fields fields;
  AddComponents("tasks", specification.tasks(), other.tasks(), fields);
  AddComponents("networks", specification.networks(), other.networks(), fields);
  AddComponents("encodings", specification.encodings(), other.encodings(), fields);
  AddFields("training", specification.training(), fields);
  AddFields("evaluation", specification.evaluation(), fields);
  fields["learning_rates"] =
      absl::StrJoin(specification.learning_rates(), ", ",
                    [](std::string* out, double rate) { absl::StrAppend(out, FormatExact(rate)); });
  fields["seeds"] = FormatSeeds(specification.seeds());
  fields["weight_seeds"] = FormatSeeds(specification.weight_seeds());
  fields["data_seeds"] = FormatSeeds(specification.data_seeds());
  fields["compatibility"] = specification.compatibility();
  fields["evaluated_trial"] = specification.evaluated_trial();
  return fields;
}

}  // namespace

std::vector<ExperimentDifference> Differences(const v1::ExperimentSpecification& first,
                                              const v1::ExperimentSpecification& second) {
  const Fields first_fields = FieldsOf(first, second);
  const Fields second_fields = FieldsOf(second, first);
  std::set<std::string> paths;
  for (const auto& [path, value] : first_fields) paths.insert(path);
  for (const auto& [path, value] : second_fields) paths.insert(path);
  const auto value_of = [](const Fields& fields, const std::string& path) {
    const auto found = fields.find(path);
    return found == fields.end() ? "" : found->second;
  };
  std::vector<ExperimentDifference> differences;
  for (const std::string& path : paths) {
    std::string one = value_of(first_fields, path);
    std::string two = value_of(second_fields, path);
    if (one != two) differences.push_back({path, std::move(one), std::move(two)});
  }
  return differences;
}

}  // namespace lengthwise::client
