#include "specification/components.h"

#include <cmath>
#include <map>
#include <set>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "google/protobuf/util/json_util.h"
#include "models/encodings/positions.h"
#include "models/networks/catalogue.h"
#include "nlohmann/json.hpp"
#include "platform/printable_text.h"

namespace lengthwise::specification {
namespace {

using google::protobuf::Value;

constexpr size_t kMostLabel = 48;

// What keeps a user's parameter from the catalogue's types; empty if nothing does.
std::string Mistake(const Value& value) {
  switch (value.kind_case()) {
    case Value::kBoolValue:
      return "";
    case Value::kNumberValue:
      if (std::isfinite(value.number_value())) return "";
      return absl::StrCat("got ", value.number_value(), ", expected a finite value");
    case Value::kStringValue:
      if (platform::IsPrintable(value.string_value())) return "";
      return "has control characters; expected text";
    default:
      return "expected a number, true, false or text";
  }
}

nlohmann::json ToJson(const Value& value) {
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(value, &text);  // no Value fails
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// False if a number in the value, at any depth, is one that JSON does not have.
bool IsFinite(const Value& value) {
  if (value.has_list_value()) return absl::c_all_of(value.list_value().values(), IsFinite);
  if (!value.has_struct_value()) return std::isfinite(value.number_value());
  return absl::c_all_of(value.struct_value().fields(),
                        [](const auto& field) { return IsFinite(field.second); });
}

// Writes the arguments of a user's module as JSON with sorted names.
void FoldArguments(const std::string& path, v1::Component& network, Findings& findings) {
  const auto found = network.mutable_parameters()->find("arguments");
  if (network.name() != models::kPythonNetwork || found == network.mutable_parameters()->end()) {
    return;
  }
  const std::string field = path + ".arguments";
  Value& value = found->second;
  const bool is_text = value.kind_case() == Value::kStringValue;
  if (is_text && value.string_value().empty()) return;
  if (!IsFinite(value)) {
    findings.Add(field, "has a number that is infinite or not a number, which JSON does not have");
    value.set_string_value("");
    return;
  }
  const nlohmann::json arguments =
      is_text ? nlohmann::json::parse(value.string_value(), nullptr, /*allow_exceptions=*/false)
              : ToJson(value);
  if (!arguments.is_object()) {
    findings.Add(field, "expected a map of names and values, such as {d_model: 64}");
    value.set_string_value("");
    return;
  }
  for (const char* given : {"vocabulary", "outputs"}) {
    if (!arguments.contains(given)) continue;
    findings.Add(absl::StrCat(field, ".", given), "the task gives it: remove it");
  }
  value.set_string_value(arguments.empty() ? "" : arguments.dump(-1, ' ', /*ensure_ascii=*/true));
}

std::optional<Choice> Resolve(absl::Span<const catalogue::Entry* const> entries,
                              absl::string_view kind, const std::string& path,
                              v1::Component& component, Findings& findings) {
  std::vector<catalogue::Problem> problems;
  if (kind == "encoding") FoldFormulaParameters(path, component, findings);
  if (kind == "network") FoldArguments(path, component, findings);
  if (component.name().empty()) {
    std::vector<std::string> names;
    for (const catalogue::Entry* entry : entries) names.push_back(entry->name);
    findings.Add(absl::StrCat(path, ".name"), "required", catalogue::Suggestion("", names));
    return std::nullopt;
  }
  const std::optional<size_t> index =
      catalogue::Find(entries, component.name(), kind, path, problems);
  if (!index) {
    findings.AddAll(problems);
    return std::nullopt;
  }
  if (kind == "encoding" && !FoldPositions(component)) {
    findings.Add(absl::StrCat(path, ".randomized"),
                 "is false, but positions: subset draws them; remove one of the two");
  }
  if (const auto beside = component.mutable_parameters()->find("beside");
      kind == "encoding" && beside != component.mutable_parameters()->end() &&
      beside->second.has_struct_value()) {
    beside->second.set_string_value(ToJson(beside->second).dump());
  }
  v1::Component sound = component;
  for (const auto& [name, value] : component.parameters()) {
    const std::string mistake = Mistake(value);
    if (mistake.empty()) continue;
    findings.Add(absl::StrCat(path, ".", name), mistake);
    sound.mutable_parameters()->erase(name);
  }
  const catalogue::Parameters given = ParametersOf(sound);
  Choice choice{*index, catalogue::Resolve(*entries[*index], given, path, problems)};
  findings.AddAll(problems);
  component.clear_parameters();
  for (const catalogue::ParameterEntry& parameter : entries[*index]->parameters) {
    const catalogue::ParameterValue& value = choice.parameters.values().at(parameter.name);
    if (parameter.omitted && value == parameter.default_value) continue;
    (*component.mutable_parameters())[parameter.name] = ToValue(value);
  }
  return choice;
}

std::string BaseLabel(const catalogue::Entry& entry, const catalogue::Parameters& parameters) {
  if (!parameters.values().contains("randomized")) return entry.name;
  const absl::string_view choice = models::PositionPolicy(parameters).name();
  const std::string prefix = choice == "counted"  ? ""
                             : choice == "subset" ? "randomized_"
                                                  : absl::StrCat(choice, "_");
  return absl::StrCat(prefix, entry.name);
}

// Formats a value with the characters that a label may contain.
std::string LabelText(const catalogue::ParameterValue& value) {
  std::string text = absl::AsciiStrToLower(catalogue::FormatValue(value));
  for (char& c : text) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '.') c = '_';
  }
  return text;
}

// Labels the components that have no label. Components that would share a label get the parameters
// in which they differ appended.
void FillLabels(absl::Span<const catalogue::Entry* const> entries,
                const std::vector<std::optional<Choice>>& choices, Components& components) {
  std::map<std::string, std::vector<int>> groups;
  for (int i = 0; i < components.size(); ++i) {
    if (components[i].label().empty() && choices[i]) {
      groups[BaseLabel(*entries[choices[i]->index], choices[i]->parameters)].push_back(i);
    }
  }
  for (const auto& [base, members] : groups) {
    std::map<int, std::string> labels;
    for (const int i : members) labels[i] = base;
    if (members.size() > 1) {
      const auto& first = choices[members.front()]->parameters.values();
      for (const auto& [name, value] : first) {
        bool differs = false;
        for (const int i : members) {
          differs |= choices[i]->parameters.values().find(name)->second != value;
        }
        if (!differs) continue;
        for (const int i : members) {
          absl::StrAppend(&labels[i], "_", name, "=",
                          LabelText(choices[i]->parameters.values().find(name)->second));
        }
      }
    }
    int number = 0;
    for (const auto& [i, label] : labels) {
      ++number;
      // A label with a formula in it would exceed kMostLabel.
      components[i].set_label(label.size() <= kMostLabel || members.size() == 1
                                  ? label
                                  : absl::StrCat(base, "_", number));
    }
  }
}

// Two components of a kind with the same identity are duplicates.
std::string Identity(const v1::Component& component, const catalogue::Parameters& parameters) {
  std::string identity = component.name();
  for (const auto& [name, value] : parameters.values()) {
    absl::StrAppend(&identity, "\n", name, "=", catalogue::FormatValue(value));
  }
  return identity;
}

void CheckLabels(const std::vector<std::string>& paths, const std::set<int>& repeated,
                 const Components& components, Findings& findings) {
  std::map<std::string, int> first;
  for (int i = 0; i < components.size(); ++i) {
    const std::string& label = components[i].label();
    if (label.empty() || repeated.count(i) > 0) continue;
    const std::string field = absl::StrCat(paths[i], ".label");
    bool valid = label.size() <= kMostLabel;
    for (const char c : label) {
      valid &= absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '.' || c == '=';
    }
    if (!valid) {
      findings.Add(field, "got \"", label, "\", expected at most ", kMostLabel,
                   " characters of a-z, 0-9, \"_\", \".\" and \"=\"");
    }
    const auto [found, is_new] = first.emplace(label, i);
    if (!is_new) {
      findings.Add(field, "\"", label, "\" is also the label of ", paths[found->second],
                   "; set a different one");
    }
  }
}

}  // namespace

bool FoldPositions(v1::Component& encoding) {
  auto& parameters = *encoding.mutable_parameters();
  const auto choice = parameters.find("positions");
  if (choice == parameters.end() || choice->second.string_value() != "subset") return true;
  const auto randomized = parameters.find("randomized");
  if (randomized != parameters.end() && !randomized->second.bool_value()) return false;
  parameters.erase("positions");
  parameters["randomized"].set_bool_value(true);
  return true;
}

std::vector<std::optional<Choice>> ResolveComponents(
    absl::Span<const catalogue::Entry* const> entries, absl::string_view kind,
    absl::string_view path, Components& components, Findings& findings) {
  std::vector<std::optional<Choice>> choices;
  std::vector<std::string> paths;
  std::map<std::string, int> identities;
  std::set<int> repeated;
  for (int i = 0; i < components.size(); ++i) {
    paths.push_back(absl::StrCat(path, "[", i, "]"));
    choices.push_back(findings.enough()
                          ? std::nullopt
                          : Resolve(entries, kind, paths[i], components[i], findings));
    if (!choices[i]) continue;
    const auto [found, is_new] =
        identities.emplace(Identity(components[i], choices[i]->parameters), i);
    if (is_new) continue;
    repeated.insert(i);
    findings.Add(paths[i], "duplicate of ", paths[found->second]);
  }
  FillLabels(entries, choices, components);
  CheckLabels(paths, repeated, components, findings);
  return choices;
}

std::optional<Choice> ResolveComponent(absl::Span<const catalogue::Entry* const> entries,
                                       absl::string_view kind, absl::string_view path,
                                       v1::Component& component, Findings& findings) {
  Components components;
  components.Add()->Swap(&component);
  std::vector<std::optional<Choice>> choices = {
      Resolve(entries, kind, std::string(path), components[0], findings)};
  FillLabels(entries, choices, components);
  CheckLabels({std::string(path)}, {}, components, findings);
  component.Swap(&components[0]);
  return choices[0];
}

google::protobuf::Value ToValue(const catalogue::ParameterValue& parameter) {
  Value value;
  if (const auto* flag = std::get_if<bool>(&parameter)) {
    value.set_bool_value(*flag);
  } else if (const auto* integer = std::get_if<int64_t>(&parameter)) {
    value.set_number_value(static_cast<double>(*integer));
  } else if (const auto* number = std::get_if<double>(&parameter)) {
    value.set_number_value(*number);
  } else {
    value.set_string_value(std::get<std::string>(parameter));
  }
  return value;
}

catalogue::Parameters ParametersOf(const v1::Component& component) {
  catalogue::Parameters parameters;
  for (const auto& [name, value] : component.parameters()) {
    switch (value.kind_case()) {
      case Value::kBoolValue:
        parameters.Set(name, value.bool_value());
        break;
      case Value::kNumberValue:
        parameters.Set(name, value.number_value());
        break;
      case Value::kStringValue:
        parameters.Set(name, value.string_value());
        break;
      default:
        break;
    }
  }
  return parameters;
}

}  // namespace lengthwise::specification
