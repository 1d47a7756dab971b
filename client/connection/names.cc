#include "client/connection/names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
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

}  // namespace

std::string ShortName(const std::string& name) { return name.substr(name.rfind('/') + 1); }

absl::StatusOr<std::string> FileNameOf(const std::string& name) {
  const std::string file = ShortName(name);
  const bool printable = std::all_of(file.begin(), file.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  // A leading dot would hide the file; programs would read a leading hyphen as an option.
  if (!printable || file.empty() || file[0] == '.' || file[0] == '-') {
    return absl::FailedPreconditionError(
        absl::StrCat("the server names \"", absl::CHexEscape(name),
                     "\", which is not a safe file name; is it a lengthwise_server?"));
  }
  return file;
}

bool NamesTrial(const std::string& text) { return !Split(text).second.empty(); }

absl::StatusOr<v1::Experiment> FindExperiment(Connection& connection, const std::string& text) {
  const std::string id = WithoutCollection(text);
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
  std::vector<const v1::Experiment*> with_prefix;
  std::vector<std::string> names;
  for (const v1::Experiment& experiment : experiments) {
    if (experiment.specification().name() == id) return experiment;  // newest first
    names.push_back(ShortName(experiment.name()));
    if (absl::StartsWith(names.back(), id)) with_prefix.push_back(&experiment);
  }
  if (with_prefix.size() == 1) return *with_prefix[0];
  if (with_prefix.size() > 1) {
    names.clear();
    for (const v1::Experiment* experiment : with_prefix) {
      names.push_back(ShortName(experiment->name()));
    }
    if (names.size() > 5) names.resize(5);
    return absl::NotFoundError(
        absl::StrCat("\"", id, "\" matches several experiments: ", absl::StrJoin(names, ", "),
                     with_prefix.size() > 5 ? ", ..." : ""));
  }
  return absl::NotFoundError(
      absl::StrCat("there is no experiment \"", id, "\"", catalogue::Suggestion(id, names)));
}

absl::StatusOr<v1::Trial> FindTrial(Connection& connection, const std::string& text) {
  const auto [experiment_text, id] = Split(text);
  ASSIGN_OR_RETURN(auto experiment, FindExperiment(connection, experiment_text));
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
    if (absl::StartsWith(ids.back(), id)) with_prefix.push_back(&trial);
  }
  if (with_prefix.size() == 1) return *with_prefix[0];
  return absl::NotFoundError(absl::StrCat("there is no trial \"", id, "\" in ",
                                          ShortName(experiment.name()),
                                          catalogue::Suggestion(id, ids)));
}

}  // namespace lengthwise::client
