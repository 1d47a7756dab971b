#include "client/comparison/published_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "catalogue/suggestion.h"
#include "client/comparison/published_files.h"
#include "models/networks/catalogue.h"

namespace lengthwise::client {
namespace {

using nlohmann::json;

// What an encoding does where it does not say.
bool Ordinary(const std::string& flag) { return flag == "sorted" || flag == "trained"; }

using Wanted = ParameterValues::mapped_type;

bool Equals(const google::protobuf::Value& value, const Wanted& wanted) {
  if (const bool* flag = std::get_if<bool>(&wanted)) return value.bool_value() == *flag;
  if (const double* number = std::get_if<double>(&wanted)) return value.number_value() == *number;
  return value.string_value() == std::get<std::string>(wanted);
}

// Whether a component's parameter has the value, or lacks it where that is the ordinary one.
bool Has(const v1::Component& component, const std::string& name, const Wanted& wanted) {
  const auto found = component.parameters().find(name);
  if (found != component.parameters().end()) return Equals(found->second, wanted);
  const bool* flag = std::get_if<bool>(&wanted);
  return flag != nullptr && *flag == Ordinary(name);
}

// Whether it is the default of a network's parameter.
bool IsDefault(const std::string& network, const std::string& name, const Wanted& wanted) {
  for (const models::NetworkEntry* entry : models::NetworkEntries()) {
    if (entry->name != network) continue;
    for (const catalogue::ParameterEntry& parameter : entry->parameters) {
      if (parameter.name != name) continue;
      google::protobuf::Value value;
      if (const bool* flag = std::get_if<bool>(&parameter.default_value)) {
        value.set_bool_value(*flag);
      } else if (const auto* text = std::get_if<std::string>(&parameter.default_value)) {
        value.set_string_value(*text);
      } else if (const auto* integer = std::get_if<int64_t>(&parameter.default_value)) {
        value.set_number_value(static_cast<double>(*integer));
      } else {
        value.set_number_value(std::get<double>(parameter.default_value));
      }
      return Equals(value, wanted);
    }
  }
  return false;
}

Wanted ReadWanted(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return value.get<bool>();
}

// {"name": ..., and parameters}.
void ReadComponent(const json& object, std::string& component, ParameterValues& parameters) {
  for (const auto& [name, value] : object.items()) {
    if (name == "name") {
      component = value;
    } else {
      parameters[name] = ReadWanted(value);
    }
  }
}

// One of the values by its name in a file.
template <typename Value>
Value ReadChoice(const json& object, const std::string& field,
                 const std::map<std::string, Value>& values) {
  const std::string name = object.at(field);
  const auto found = values.find(name);
  if (found != values.end()) return found->second;
  throw json::other_error::create(500, absl::StrCat("unknown ", field, " ", name), nullptr);
}

Statistic ReadStatistic(const json& object) {
  return ReadChoice<Statistic>(object, "statistic",
                               {{"maximum", Statistic::kMaximum},
                                {"mean_at_best_rate", Statistic::kMeanAtBestRate},
                                {"mean_of_all", Statistic::kMeanOfAll},
                                {"median", Statistic::kMedian}});
}

const std::map<std::string, Quantity>& Quantities() {
  static const auto& quantities =
      *new std::map<std::string, Quantity>{{"unseen_accuracy", Quantity::kUnseenAccuracy},
                                           {"training_accuracy", Quantity::kTrainingAccuracy},
                                           {"training_hours", Quantity::kTrainingHours},
                                           {"steps_per_second", Quantity::kStepsPerSecond},
                                           {"loss", Quantity::kLoss},
                                           {"attention_cosine", Quantity::kAttentionCosine}};
  return quantities;
}

// `comparison` has what all columns share.
PublishedColumn ReadColumn(const json& object, const json& comparison) {
  PublishedColumn column{
      .key = object.at("key"),
      .label = object.at("label"),
      .statistic = ReadStatistic(object.contains("statistic") ? object : comparison)};
  column.attention = object.value("attention", column.attention);
  column.length = object.value("length", 0);
  ReadComponent(object.at("encoding"), column.encoding, column.parameters);
  return column;
}

PublishedRow ReadRow(const json& object) {
  PublishedRow row{.task = object.value("task", object.at("key").get<std::string>()),
                   .label = object.at("label"),
                   .level = object.value("level", ""),
                   .permutation_invariant = object.value("permutation_invariant", false),
                   .random_accuracy = object.value("random_accuracy_percent", 0.0)};
  if (object.contains("network")) {
    ReadComponent(object.at("network"), row.network, row.network_parameters);
  }
  if (object.contains("seeds")) row.seeds = object.at("seeds").get<int64_t>();
  if (object.contains("quantity")) row.quantity = ReadChoice(object, "quantity", Quantities());
  return row;
}

size_t IndexOf(const json& keyed, const std::string& key) {
  for (size_t i = 0; i < keyed.size(); ++i) {
    if (keyed[i].at("key") == key) return i;
  }
  throw json::other_error::create(500, "a cell names \"" + key + "\", which is not in the table",
                                  nullptr);
}

// Throws what nlohmann-json throws.
PublishedTable Read(absl::string_view name, const json& file) {
  PublishedTable table;
  const std::string paper = file.at("paper");
  if (!absl::StartsWith(name, paper + "_")) {
    throw json::other_error::create(500, "its name must begin with its paper, " + paper, nullptr);
  }
  table.key = absl::StrCat(paper, "/", name.substr(paper.size() + 1));
  table.citation = file.at("citation");
  table.table = file.at("table");
  table.title = file.at("title");
  table.aggregation = file.at("aggregation");
  const json& comparison = file.at("comparison");
  table.quantity = ReadChoice(comparison, "quantity", Quantities());
  for (const json& column : file.at("columns")) {
    table.columns.push_back(ReadColumn(column, comparison));
  }
  for (const json& row : file.at("rows")) table.rows.push_back(ReadRow(row));
  for (const json& cell : file.at("cells")) {
    PublishedValue value{.value = cell.at("value")};
    if (cell.contains("std")) value.deviation = cell.at("std").get<double>();
    table.cells[{IndexOf(file.at("rows"), cell.at("row")),
                 IndexOf(file.at("columns"), cell.at("column"))}] = value;
  }
  table.notes = file.at("notes").get<std::vector<std::string>>();
  return table;
}

}  // namespace

bool PublishedColumn::Matches(const v1::Component& network, const v1::Component& given) const {
  const auto own = network.parameters().find("attention");
  if (attention != (own == network.parameters().end() ? "softmax" : own->second.string_value())) {
    return false;
  }
  if (!encoding.empty() && given.name() != encoding) return false;
  return std::all_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
    return Has(given, parameter.first, parameter.second);
  });
}

bool PublishedRow::Matches(const v1::Component& given_task,
                           const v1::Component& given_network) const {
  return given_task.name() == task && MatchesNetwork(given_network);
}

bool PublishedRow::MatchesNetwork(const v1::Component& given_network) const {
  if (!network.empty() && given_network.name() != network) return false;
  return std::all_of(
      network_parameters.begin(), network_parameters.end(), [&](const auto& parameter) {
        const auto& [name, wanted] = parameter;
        const auto found = given_network.parameters().find(name);
        return found != given_network.parameters().end() ? Equals(found->second, wanted)
                                                         : IsDefault(network, name, wanted);
      });
}

bool PublishedTable::HasLengthAccuracies() const {
  return quantity == Quantity::kUnseenAccuracy &&
         std::any_of(columns.begin(), columns.end(),
                     [](const PublishedColumn& column) { return column.length > 0; });
}

std::string QuantityName(Quantity quantity) {
  for (const auto& [name, value] : Quantities()) {
    if (value == quantity) return name;
  }
  return "";
}

absl::StatusOr<PublishedTable> ParsePublishedTable(absl::string_view name, absl::string_view text) {
  try {
    return Read(name, json::parse(text.begin(), text.end()));
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(name, ".json: ", error.what()));
  }
}

absl::StatusOr<std::vector<PublishedTable>> PublishedTables() {
  std::vector<PublishedTable> tables;
  for (const PublishedFile& file : PublishedFiles()) {
    auto table = ParsePublishedTable(file.name, file.json);
    if (!table.ok()) return absl::InternalError(table.status().message());
    tables.push_back(*std::move(table));
  }
  std::sort(tables.begin(), tables.end(),
            [](const PublishedTable& a, const PublishedTable& b) { return a.key < b.key; });
  return tables;
}

absl::StatusOr<PublishedTable> FindPublishedTable(absl::string_view key) {
  auto tables = PublishedTables();
  if (!tables.ok()) return tables.status();
  std::vector<std::string> keys;
  for (PublishedTable& table : *tables) {
    if (table.key == key) return std::move(table);
    keys.push_back(table.key);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown published table \"", key, "\"",
                                                 catalogue::Suggestion(key, keys),
                                                 "; `lengthwise results --compare list` prints "
                                                 "them"));
}

}  // namespace lengthwise::client
