#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "catalogue/suggestion.h"
#include "platform/status_macros.h"
#include "server/coordination/names.h"
#include "server/coordination/reads.h"

namespace lengthwise::server {
namespace {

using Request = v1::FindExperimentRequest;
using Response = v1::FindExperimentResponse;

// Experiment and trial of "experiments/E/trials/T" and its short forms. The trial is empty if the
// text names none.
std::pair<std::string, std::string> Split(absl::string_view text) {
  text = absl::StripPrefix(text, "experiments/");
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (parts.size() == 3 && parts[1] == "trials") return {parts[0], parts[2]};
  if (parts.size() == 2) return {parts[0], parts[1]};
  return {std::string(text), ""};
}

// True if `beginning` begins `name` and cuts no number of it.
bool Begins(absl::string_view beginning, absl::string_view name) {
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  return absl::StartsWith(name, beginning) &&
         !(name.size() > beginning.size() && is_digit(beginning.back()) &&
           is_digit(name[beginning.size()]));
}

// Ids that a misspelling is compared with: the newest experiments, or the first trials of a grid.
// Each takes up to 50 us.
constexpr size_t kMostCompared = 1000;

std::string SuggestionOf(absl::string_view text, std::vector<std::string> ids) {
  ids.resize(std::min(ids.size(), kMostCompared));
  return catalogue::Suggestion(text, ids);
}

// The first ids, comma-separated.
std::string First(const std::vector<std::string>& ids) {
  constexpr size_t kMost = 5;
  const size_t shown = std::min(ids.size(), kMost);
  return absl::StrCat(absl::StrJoin(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(shown), ", "),
                      ids.size() > kMost ? ", ..." : "");
}

// Ids of all experiments and, of these, those of the specification `text` and those that begin so;
// all newest first.
struct Candidates {
  std::vector<std::string> all;
  std::vector<std::string> of_specification;
  std::vector<std::string> begun;
};

absl::StatusOr<Candidates> FindCandidates(StorageReader& reader, absl::string_view text) {
  Candidates found;
  ASSIGN_OR_RETURN(const auto experiments, reader.ListExperimentIds());
  for (const auto& [id, name] : experiments) {
    found.all.push_back(id);
    if (name == text) found.of_specification.push_back(id);
    if (Begins(text, id)) found.begun.push_back(id);
  }
  return found;
}

absl::StatusOr<std::pair<std::string, Response::Match>> FindId(StorageReader& reader,
                                                               const std::string& text,
                                                               Request::Use use) {
  if (text.empty()) {
    return absl::InvalidArgumentError(
        "the name of the experiment is empty; `lengthwise list` shows the names");
  }
  ASSIGN_OR_RETURN(const auto exact, reader.FindExperiment(text));
  if (exact.has_value()) return std::pair(text, Response::FULL_NAME);
  ASSIGN_OR_RETURN(const Candidates found, FindCandidates(reader, text));
  const std::string none = absl::StrCat("there is no experiment \"", text, "\"");
  if (found.all.empty()) {
    return absl::NotFoundError(absl::StrCat(none, "; this server has none yet"));
  }
  if (use == Request::DELETE) {
    // Suggests no single one: a guess may be wrong, and a deletion cannot be undone.
    const auto& matching = found.of_specification.empty() ? found.begun : found.of_specification;
    return absl::NotFoundError(
        absl::StrCat(none, "; `delete` needs a full name, ",
                     matching.empty() ? "as `lengthwise list` shows"
                                      : absl::StrCat("and this one matches ", First(matching))));
  }
  if (found.of_specification.size() == 1) {
    return std::pair(found.of_specification[0], Response::ONLY_OF_SPECIFICATION);
  }
  const bool guesses = use == Request::READ;
  if (!found.of_specification.empty()) {
    if (guesses) return std::pair(found.of_specification[0], Response::GUESS);
    return absl::NotFoundError(
        absl::StrCat("\"", text, "\" is the specification of several experiments (",
                     First(found.of_specification), "); this command needs the full name of one"));
  }
  if (found.begun.size() > 1) {
    return absl::NotFoundError(
        absl::StrCat("\"", text, "\" matches several experiments: ", First(found.begun)));
  }
  if (found.begun.size() == 1) {
    if (guesses) return std::pair(found.begun[0], Response::GUESS);
    return absl::NotFoundError(
        absl::StrCat(none, "; this command needs a full name, such as ", found.begun[0]));
  }
  return absl::NotFoundError(absl::StrCat(none, SuggestionOf(text, found.all)));
}

absl::StatusOr<std::pair<std::string, Response::Match>> FindTrialId(StorageReader& reader,
                                                                    const std::string& experiment,
                                                                    const std::string& text,
                                                                    Request::Use use) {
  ASSIGN_OR_RETURN(const auto exact, reader.FindTrial(experiment, text));
  if (exact.has_value()) return std::pair(text, Response::FULL_NAME);
  ASSIGN_OR_RETURN(const auto record, reader.FindExperiment(experiment));
  int32_t index = 0;
  if (std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
      absl::SimpleAtoi(text, &index)) {
    ASSIGN_OR_RETURN(const auto at, reader.ListTrials(record->key, index, {}, 1));
    if (!at.empty() && at[0].index == index) return std::pair(at[0].id, Response::FULL_NAME);
  }
  ASSIGN_OR_RETURN(const auto all, reader.ListTrialIds(record->key));
  std::vector<std::string> begun;
  for (const std::string& id : all) {
    if (Begins(text, id)) begun.push_back(id);
  }
  if (begun.size() == 1 && use == Request::READ) return std::pair(begun[0], Response::GUESS);
  return absl::NotFoundError(
      absl::StrCat("there is no trial \"", text, "\" in ", experiment, SuggestionOf(text, all)));
}

}  // namespace

absl::StatusOr<v1::FindExperimentResponse> Search(StorageReader& reader,
                                                  const v1::FindExperimentRequest& request) {
  const auto [experiment, trial] = Split(request.text());
  if (!trial.empty() && request.kind() == Request::EXPERIMENT) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", request.text(), "\" names a trial; ",
                     request.use() == Request::DELETE
                         ? "single trials cannot be deleted, only whole experiments"
                         : absl::StrCat("name an experiment, such as ", experiment)));
  }
  ASSIGN_OR_RETURN(auto found, FindId(reader, experiment, request.use()));
  Response result;
  result.mutable_experiment()->set_name(ExperimentName(found.first));
  result.set_match(found.second);
  if (trial.empty()) {
    if (request.kind() != Request::TRIAL) return result;
    return absl::InvalidArgumentError(absl::StrCat("\"", request.text(),
                                                   "\" is an experiment; name a trial of it, such "
                                                   "as ",
                                                   found.first, "/0"));
  }
  ASSIGN_OR_RETURN(const auto of_trial, FindTrialId(reader, found.first, trial, request.use()));
  result.mutable_trial()->set_name(TrialName(found.first, of_trial.first));
  result.set_match(std::max(result.match(), of_trial.second));
  return result;
}

}  // namespace lengthwise::server
