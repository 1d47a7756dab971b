#include "client/comparison/protocol_difference.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/rendering/numbers.h"
#include "specification/packing.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

using Found = std::vector<ProtocolDifference>;

void AddIfDifferent(std::string what, std::string here, std::string published, Found& differences) {
  if (here == published) return;
  differences.push_back({std::move(what), std::move(here), std::move(published)});
}

std::string ScoredLengths(const v1::Evaluation& evaluation, const v1::Training& training) {
  const int32_t seen_up_to =
      evaluation.has_seen_up_to() ? evaluation.seen_up_to() : training.lengths().max();
  std::set<int32_t> unseen;
  for (const int32_t length : evaluation.lengths()) {
    if (length > seen_up_to) unseen.insert(length);
  }
  return FormatLengths({unseen.begin(), unseen.end()});
}

std::string FormatRates(const v1::ExperimentSpecification& specification) {
  std::set<double> rates(specification.learning_rates().begin(),
                         specification.learning_rates().end());
  return absl::StrJoin(
      rates, ", ", [](std::string* out, double rate) { absl::StrAppend(out, FormatExact(rate)); });
}

// Pairs of a weight seed and a data seed.
int64_t SeedCount(const v1::ExperimentSpecification& specification) {
  if (specification.weight_seeds_size() > 0) {
    return int64_t{specification.weight_seeds_size()} * specification.data_seeds_size();
  }
  return std::max(1, specification.seeds_size());
}

// The parameters of all of `here`, by name, against those of `published`.
void CompareParameters(absl::string_view prefix, const std::vector<const v1::Component*>& here,
                       const v1::Component& published, Found& differences) {
  const std::map<std::string, google::protobuf::Value> parameters(published.parameters().begin(),
                                                                  published.parameters().end());
  for (const auto& [name, value] : parameters) {
    std::set<std::string> values;
    for (const v1::Component* component : here) {
      const auto found = component->parameters().find(name);
      if (found != component->parameters().end()) values.insert(FormatParameter(found->second));
    }
    if (values.empty()) continue;
    AddIfDifferent(absl::StrCat(prefix, name), absl::StrJoin(values, ", "), FormatParameter(value),
                   differences);
  }
}

void CompareComponent(const std::string& what, const v1::Component& here,
                      const v1::Component& published, Found& differences) {
  AddIfDifferent(what, here.name(), published.name(), differences);
  if (here.name() == published.name()) {
    CompareParameters(absl::StrCat(what, " "), {&here}, published, differences);
  }
}

// The rows that name this network.
std::vector<const PublishedRow*> RowsOf(const v1::Component& network, const PublishedTable& table) {
  std::vector<const PublishedRow*> rows;
  for (const PublishedRow& row : table.rows) {
    if (!row.network.empty() && row.MatchesNetwork(network)) rows.push_back(&row);
  }
  return rows;
}

void CompareNetworks(const v1::ExperimentSpecification& here,
                     const v1::ExperimentSpecification& published, const PublishedTable& table,
                     Found& differences) {
  // Of several a table's rows say which are meant.
  if (published.networks_size() != 1) return;
  v1::Component network = published.networks(0);
  network.mutable_parameters()->erase("attention");  // a column of its own
  // Less the parameters that its rows name.
  std::vector<v1::Component> same;
  for (const v1::Component& given : here.networks()) {
    if (given.name() != network.name()) {
      differences.push_back({"network", given.name(), network.name()});
      continue;
    }
    same.push_back(given);
    for (const PublishedRow* row : RowsOf(given, table)) {
      for (const auto& [name, value] : row->network_parameters) {
        same.back().mutable_parameters()->erase(name);
      }
    }
  }
  std::vector<const v1::Component*> compared;
  for (const v1::Component& given : same) compared.push_back(&given);
  CompareParameters("network ", compared, network, differences);
}

// What the paper had for the rows that the networks belong to.
void CompareSeeds(const v1::ExperimentSpecification& here,
                  const v1::ExperimentSpecification& published, const PublishedTable& table,
                  Found& differences) {
  std::set<int64_t> expected;
  if (here.networks().empty()) expected.insert(SeedCount(published));
  for (const v1::Component& network : here.networks()) {
    const std::vector<const PublishedRow*> rows = RowsOf(network, table);
    for (const PublishedRow* row : rows) expected.insert(row->seeds.value_or(SeedCount(published)));
    if (rows.empty()) expected.insert(SeedCount(published));
  }
  if (expected.contains(SeedCount(here))) return;
  differences.push_back({"seeds", FormatCount(SeedCount(here)),
                         absl::StrJoin(expected, " or ", [](std::string* out, int64_t seeds) {
                           absl::StrAppend(out, FormatCount(seeds));
                         })});
}

void CompareTasks(const v1::ExperimentSpecification& here,
                  const v1::ExperimentSpecification& published, Found& differences) {
  for (const v1::Component& paper : published.tasks()) {
    std::vector<const v1::Component*> same;
    for (const v1::Component& task : here.tasks()) {
      if (task.name() == paper.name()) same.push_back(&task);
    }
    CompareParameters("task ", same, paper, differences);
  }
}

void ComparePacking(const v1::Packing& here, const v1::Packing& published, Found& differences) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  AddIfDifferent("tokens of a sequence", FormatCount(here.tokens()),
                 FormatCount(published.tokens()), differences);
  AddIfDifferent("packing answers_only", flag(here.answers_only()), flag(published.answers_only()),
                 differences);
  AddIfDifferent("packing attend_across", flag(here.attend_across()),
                 flag(published.attend_across()), differences);
  AddIfDifferent("packing reset_positions", flag(specification::RestartsPositions(here)),
                 flag(specification::RestartsPositions(published)), differences);
}

bool IsRandomized(const v1::Component& encoding) {
  const auto found = encoding.parameters().find("randomized");
  return found != encoding.parameters().end() && found->second.bool_value();
}

// The paper's encoding that `encoding` is compared with: of that label, where a paper has several
// of the name, or the first of the name; nothing where there is none.
std::optional<v1::Component> Counterpart(const v1::Component& encoding,
                                         const v1::ExperimentSpecification& published) {
  std::optional<v1::Component> first;
  for (const v1::Component& paper : published.encodings()) {
    if (paper.name() != encoding.name()) continue;
    if (paper.label() == encoding.label()) return paper;
    if (!first.has_value()) first = paper;
  }
  return first;
}

// Each encoding against the protocol's of that name, but for what makes it a column of its own.
void CompareEncodings(const v1::ExperimentSpecification& here,
                      const v1::ExperimentSpecification& published, Found& differences) {
  // What several encodings have in common is said once.
  std::set<std::tuple<std::string, std::string, std::string>> said;
  for (const v1::Component& encoding : here.encodings()) {
    std::optional<v1::Component> paper = Counterpart(encoding, published);
    if (!paper.has_value()) continue;
    paper->mutable_parameters()->erase("randomized");
    paper->mutable_parameters()->erase("sorted");
    // Only what draws positions, or learns a vector for each, depends on how many there are.
    if (!IsRandomized(encoding) && encoding.name() != "learned") {
      paper->mutable_parameters()->erase("max_position");
    }
    Found found;
    CompareParameters("encodings' ", {&encoding}, *paper, found);
    for (ProtocolDifference& difference : found) {
      if (said.emplace(difference.what, difference.here, difference.published).second) {
        differences.push_back(std::move(difference));
      }
    }
  }
}

// What a paper did: the specification that names its protocol and nothing else.
absl::StatusOr<v1::ExperimentSpecification> ResolveProtocol(absl::string_view protocol) {
  v1::ExperimentSpecification asked;
  asked.set_name("paper");
  asked.set_protocol(std::string(protocol));
  auto resolved = specification::Resolve(asked, specification::Limits());
  if (!resolved.ok()) {
    return absl::InternalError(
        absl::StrCat("protocol ", protocol, ": ", resolved.status().message()));
  }
  return std::move(resolved->specification);
}

}  // namespace

std::string FormatParameter(const google::protobuf::Value& value) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kNumberValue:
      return FormatExact(value.number_value());
    case google::protobuf::Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    default:
      return value.string_value();
  }
}

std::string FormatLengths(const std::vector<int32_t>& lengths) {
  if (lengths.empty()) return "none";
  if (lengths.size() == 1) return absl::StrCat(lengths[0]);
  const int32_t step = lengths[1] - lengths[0];
  bool is_even = true;
  for (size_t i = 1; i < lengths.size(); ++i) is_even &= lengths[i] - lengths[i - 1] == step;
  if (is_even && lengths.size() > 2) {
    return absl::StrCat(lengths.front(), "..", lengths.back(),
                        step == 1 ? "" : absl::StrCat(" step ", step));
  }
  if (lengths.size() <= 8) return absl::StrJoin(lengths, ", ");
  return absl::StrCat(lengths.size(), " lengths from ", lengths.front(), " to ", lengths.back());
}

absl::StatusOr<int64_t> StepsOfProtocol(absl::string_view protocol) {
  const auto resolved = ResolveProtocol(protocol);
  if (!resolved.ok()) return resolved.status();
  return resolved->training().steps();
}

absl::StatusOr<std::vector<ProtocolDifference>> DifferencesFromProtocol(
    const v1::ExperimentSpecification& specification, const PublishedTable& table) {
  const auto resolved = ResolveProtocol(table.protocol);
  if (!resolved.ok()) return resolved.status();
  const v1::ExperimentSpecification& paper = *resolved;
  const v1::Training& training = specification.training();
  const v1::Training& paper_training = paper.training();
  Found differences;
  const auto compare = [&](std::string what, std::string here, std::string published) {
    AddIfDifferent(std::move(what), std::move(here), std::move(published), differences);
  };
  compare("steps", FormatCount(training.steps()), FormatCount(paper_training.steps()));
  compare("batch size", FormatCount(training.batch_size()),
          FormatCount(paper_training.batch_size()));
  compare("training lengths",
          absl::StrCat(training.lengths().min(), "..", training.lengths().max()),
          absl::StrCat(paper_training.lengths().min(), "..", paper_training.lengths().max()));
  if (training.has_packing() && paper_training.has_packing()) {
    ComparePacking(training.packing(), paper_training.packing(), differences);
  }
  // A column's length is evaluated or its cells are empty.
  if (!table.HasLengthAccuracies()) {
    compare("scored lengths", ScoredLengths(specification.evaluation(), training),
            ScoredLengths(paper.evaluation(), paper_training));
  }
  compare("sequences a length", FormatCount(specification.evaluation().sequences()),
          FormatCount(paper.evaluation().sequences()));
  compare("learning rates", FormatRates(specification), FormatRates(paper));
  CompareSeeds(specification, paper, table, differences);
  CompareTasks(specification, paper, differences);
  CompareNetworks(specification, paper, table, differences);
  CompareEncodings(specification, paper, differences);
  CompareComponent("optimizer", training.optimizer(), paper_training.optimizer(), differences);
  CompareComponent("schedule", training.schedule(), paper_training.schedule(), differences);
  compare("clipping norm", FormatExact(training.clip_norm()),
          FormatExact(paper_training.clip_norm()));
  compare("precision", training.precision(), paper_training.precision());
  return differences;
}

}  // namespace lengthwise::client
