#include "client/analysis/encoding_distance.h"

#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/connection/names.h"
#include "client/rendering/component_label.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/fixed_table.h"
#include "models/parameters/safetensors.h"
#include "specification/component_parameters.h"
#include "statistics/procrustes.h"

namespace lengthwise::client {
namespace {

// Of a checkpoint's tensors those that networks call "encoding.table" or
// "blocks.{b}.encoding.table" (models/encodings/encoding.h).
constexpr absl::string_view kPrefix = "parameters/";
constexpr absl::string_view kSuffix = "encoding.table";

template <typename Number>
std::vector<double> Numbers(absl::string_view bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return {numbers.begin(), numbers.end()};
}

const models::EncodingEntry* FindEntry(absl::string_view name) {
  for (const models::EncodingEntry* entry : models::EncodingEntries()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

// All parameters, those that a component does not set with their defaults.
catalogue::Parameters ParametersOf(const v1::Component& component,
                                   const models::EncodingEntry& entry) {
  // The server has checked them.
  std::vector<catalogue::Problem> problems;
  return catalogue::Resolve(entry, specification::ParametersOf(component), "", problems);
}

bool LearnsTables(const v1::Trial& trial) {
  return trial.specification().encoding().name() == "learned";
}

}  // namespace

absl::StatusOr<std::vector<EncodingTable>> DownloadTables(Connection& connection,
                                                          const std::string& trial) {
  std::string bytes;
  const auto model = connection.DownloadModel(trial, [&bytes](absl::string_view data) {
    bytes.append(data.data(), data.size());
    return absl::OkStatus();
  });
  if (!model.ok()) return model.status();
  const auto file = models::ReadSafetensors(bytes);
  if (!file.ok()) return file.status();
  std::vector<EncodingTable> tables;
  for (const models::TensorView& tensor : file->tensors) {
    if (!absl::StartsWith(tensor.name, kPrefix) || !absl::EndsWith(tensor.name, kSuffix)) continue;
    if (tensor.shape.size() != 2) continue;
    tables.push_back({.rows = tensor.shape[0],
                      .columns = tensor.shape[1],
                      .values = tensor.type == models::DataType::kFloat64
                                    ? Numbers<double>(tensor.bytes)
                                    : Numbers<float>(tensor.bytes)});
  }
  return tables;
}

absl::StatusOr<FixedEncoding> FixedEncoding::Find(absl::string_view reference,
                                                  const std::vector<PlotExperiment>& experiments) {
  v1::Component component;
  component.set_name(std::string(reference));
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) {
      const v1::Component& own = trial.specification().encoding();
      if (Label(own) == reference) component = own;
    }
  }
  const models::EncodingEntry* const entry = FindEntry(component.name());
  if (entry != nullptr &&
      models::FixedTable(entry->name, ParametersOf(component, *entry), 1, 4).has_value()) {
    return FixedEncoding(std::move(component));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--reference: \"", reference, "\" is no encoding with a fixed table; give ",
                   absl::StrJoin(models::EncodingsWithFixedTables(), " or "),
                   ", or the label of one in the experiment"));
}

EncodingTable FixedEncoding::Table(int64_t rows, int64_t columns) const {
  const models::EncodingEntry& entry = *FindEntry(component_.name());
  return {
      .rows = rows,
      .columns = columns,
      .values = *models::FixedTable(entry.name, ParametersOf(component_, entry), rows, columns)};
}

absl::StatusOr<EncodingDistances> MeasureEncodings(Connection& connection,
                                                   const std::vector<TrialSet>& sets,
                                                   const FixedEncoding& reference) {
  EncodingDistances distances;
  for (const TrialSet& set : sets) {
    if (set.trials.empty()) continue;
    if (!LearnsTables(*set.trials.front())) {
      distances.without_tables.push_back(set.encoding);
      continue;
    }
    std::set<Seeds> counted;
    for (const v1::Trial* trial : set.trials) {
      if (!counted.insert(SeedsOf(*trial)).second) continue;
      auto tables = DownloadTables(connection, trial->name());
      if (!tables.ok()) return tables.status();
      EncodingDistance distance{.set = &set, .trial = trial};
      for (const EncodingTable& table : *tables) {
        if (table.columns % 4 != 0) {
          return absl::FailedPreconditionError(
              absl::StrCat(ShortName(trial->name()), " has vectors of ", table.columns,
                           " features; fixed encodings have a multiple of four"));
        }
        const auto value = statistics::ProcrustesDistance(
            table.values, reference.Table(table.rows, table.columns).values,
            static_cast<size_t>(table.rows), static_cast<size_t>(table.columns));
        if (!value.ok()) return value.status();
        distance.blocks.push_back(*value);
      }
      if (!distance.blocks.empty()) distances.models.push_back(std::move(distance));
    }
  }
  if (distances.models.empty()) {
    return absl::FailedPreconditionError(
        "no trial that succeeded has an encoding that learns a table (`learned`)");
  }
  return distances;
}

}  // namespace lengthwise::client
