#include "client/connection/names.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "catalogue/suggestion.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

constexpr char kExperiments[] = "experiments/";

std::string WithoutCollection(const std::string& text) {
  return absl::StartsWith(text, kExperiments) ? text.substr(sizeof(kExperiments) - 1) : text;
}

// Returns experiment and trial of "experiments/E/trials/T" and its short forms. The trial is empty
// if the text has none.
std::pair<std::string, std::string> Split(const std::string& text) {
  std::vector<std::string> parts = absl::StrSplit(WithoutCollection(text), '/');
  if (parts.size() == 3 && parts[1] == "trials") return {parts[0], parts[2]};
  if (parts.size() == 2) return {parts[0], parts[1]};
  return {WithoutCollection(text), ""};
}

bool BeginsWith(const std::string& name, const std::string& id) {
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  const bool cuts_number =
      name.size() > id.size() && is_digit(id.back()) && is_digit(name[id.size()]);
  return absl::StartsWith(name, id) && !cuts_number;
}

// Returns the first names, comma-separated.
std::string Names(const std::vector<const v1::Experiment*>& experiments) {
  constexpr size_t kMost = 5;
  std::vector<std::string> names;
  for (const v1::Experiment* experiment : experiments) {
    if (names.size() < kMost) names.push_back(ShortName(experiment->name()));
  }
  return absl::StrCat(absl::StrJoin(names, ", "), experiments.size() > kMost ? ", ..." : "");
}

}  // namespace

std::string ShortName(const std::string& name) { return name.substr(name.rfind('/') + 1); }

bool NamesTrial(const std::string& text) { return !Split(text).second.empty(); }

absl::StatusOr<v1::Experiment> FindExperiment(Connection& connection, const std::string& text,
                                              NameUse use) {
  const std::string id = WithoutCollection(text);
  if (id.empty()) {
    return absl::InvalidArgumentError(
        "the name of the experiment is empty; `lengthwise list` shows the names");
  }
  auto exact = connection.GetExperiment(absl::StrCat(kExperiments, id));
  if (exact.ok() ||
      (!absl::IsNotFound(exact.status()) && !absl::IsInvalidArgument(exact.status()))) {
    return exact;
  }
  ASSIGN_OR_RETURN(auto experiments, connection.ListExperiments(0));
  if (experiments.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no experiment \"", id, "\"; this server has none yet"));
  }
  std::vector<const v1::Experiment*> of_specification;
  std::vector<const v1::Experiment*> with_prefix;
  std::vector<std::string> names;
  for (const v1::Experiment& experiment : experiments) {
    names.push_back(ShortName(experiment.name()));
    if (experiment.specification().name() == id) of_specification.push_back(&experiment);
    if (BeginsWith(names.back(), id)) with_prefix.push_back(&experiment);
  }
  const bool reads = use == NameUse::kRead;
  // The newest is the first.
  if (of_specification.size() == 1 || (reads && !of_specification.empty())) {
    return *of_specification[0];
  }
  if (!of_specification.empty()) {
    return absl::NotFoundError(
        absl::StrCat("\"", id, "\" is the specification of several experiments (",
                     Names(of_specification), "); this command needs the full name of one"));
  }
  if (with_prefix.size() > 1) {
    return absl::NotFoundError(
        absl::StrCat("\"", id, "\" matches several experiments: ", Names(with_prefix)));
  }
  if (with_prefix.size() == 1 && reads) return *with_prefix[0];
  if (with_prefix.size() == 1) {
    return absl::NotFoundError(absl::StrCat("there is no experiment \"", id,
                                            "\"; this command needs a full name, such as ",
                                            Names(with_prefix)));
  }
  return absl::NotFoundError(
      absl::StrCat("there is no experiment \"", id, "\"", catalogue::Suggestion(id, names)));
}

absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text, NameUse use) {
  const auto [experiment_text, id] = Split(text);
  ASSIGN_OR_RETURN(auto experiment, FindExperiment(connection, experiment_text, use));
  if (id.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is an experiment; name a trial of it, such as ",
                     ShortName(experiment.name()), "/0"));
  }
  auto exact = connection.GetTrial(absl::StrCat(experiment.name(), "/trials/", id));
  if (exact.ok() ||
      (!absl::IsNotFound(exact.status()) && !absl::IsInvalidArgument(exact.status()))) {
    return exact;
  }
  ASSIGN_OR_RETURN(auto trials, connection.ListTrials(experiment.name(), ""));
  int index = -1;
  const bool is_index = absl::SimpleAtoi(id, &index);
  std::vector<const v1::Trial*> with_prefix;
  std::vector<std::string> ids;
  for (const v1::Trial& trial : trials) {
    if (is_index && trial.index() == index) return trial;
    ids.push_back(ShortName(trial.name()));
    if (BeginsWith(ids.back(), id)) with_prefix.push_back(&trial);
  }
  if (with_prefix.size() == 1 && use == NameUse::kRead) return *with_prefix[0];
  return absl::NotFoundError(absl::StrCat("there is no trial \"", id, "\" in ",
                                          ShortName(experiment.name()),
                                          catalogue::Suggestion(id, ids)));
}

}  // namespace lengthwise::client
