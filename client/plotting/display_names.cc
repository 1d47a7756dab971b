#include "client/plotting/display_names.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "models/encodings/catalogue.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

const models::EncodingEntry* FindEncoding(const std::string& name) {
  for (const models::EncodingEntry* entry : models::EncodingEntries()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

bool Equals(const google::protobuf::Value& value, const catalogue::ParameterValue& expected) {
  if (const auto* flag = std::get_if<bool>(&expected)) return value.bool_value() == *flag;
  if (const auto* integer = std::get_if<int64_t>(&expected)) {
    return value.number_value() == static_cast<double>(*integer);
  }
  if (const auto* number = std::get_if<double>(&expected)) return value.number_value() == *number;
  return value.string_value() == std::get<std::string>(expected);
}

}  // namespace

std::string TaskTitle(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  const std::string label = Label(task);
  return entry != nullptr && label == task.name() ? entry->title : label;
}

std::string AxisTitle(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  return entry != nullptr ? entry->axis_title : tasks::TaskEntry().axis_title;
}

std::optional<std::string> OwnAxis(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  if (entry == nullptr || !entry->seen_up_to.has_value()) return std::nullopt;
  return entry->axis;
}

bool ComparedByLoss(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  return entry != nullptr && entry->compared_by_loss;
}

std::string LossTitle(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  return entry != nullptr ? entry->loss_title : tasks::TaskEntry().loss_title;
}

std::string AccuracyTitle(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  return entry != nullptr ? entry->accuracy_title : tasks::TaskEntry().accuracy_title;
}

std::string AxisName(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  return entry != nullptr ? entry->axis : tasks::TaskEntry().axis;
}

std::string LengthTitle(const v1::Component& task, int32_t length) {
  const std::string axis = AxisName(task);
  // "digits" are counted, a "scale" is not.
  if (absl::EndsWith(axis, "s")) {
    return absl::StrCat(length, " ", length == 1 ? axis.substr(0, axis.size() - 1) : axis);
  }
  return absl::StrCat(axis, " ", length);
}

std::string MetricTitle(absl::string_view metric) {
  return absl::StrReplaceAll(metric, {{"_", " "}});
}

bool HasOutputTokens(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  return entry == nullptr || entry->kind == tasks::TaskKind::kTransduction;
}

std::string EncodingTitle(const v1::Component& encoding) {
  const auto* entry = FindEncoding(encoding.name());
  const std::string label = Label(encoding);
  if (entry == nullptr) return label;
  absl::string_view rest = label;
  const bool randomized = absl::ConsumePrefix(&rest, "randomized_");
  if (!absl::ConsumePrefix(&rest, encoding.name())) return label;
  // What the server appends to tell components apart: "_max_position=4096".
  const bool differences = absl::ConsumePrefix(&rest, "_") && absl::StrContains(rest, "=");
  if (!rest.empty() && !differences) return label;
  return absl::StrCat(randomized ? "Randomized " : "", entry->title, rest.empty() ? "" : " ",
                      std::string(rest));
}

std::optional<double> RandomAccuracy(const v1::Component& task) {
  const auto* entry = tasks::FindTask(task.name());
  if (entry == nullptr || entry->compared_by_loss) return std::nullopt;
  for (const catalogue::ParameterEntry& parameter : entry->parameters) {
    const auto set = task.parameters().find(parameter.name);
    if (set != task.parameters().end() && !Equals(set->second, parameter.default_value)) {
      return std::nullopt;
    }
  }
  return entry->random_accuracy;
}

}  // namespace lengthwise::client
