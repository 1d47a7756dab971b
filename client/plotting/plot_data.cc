#include "client/plotting/plot_data.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "client/connection/names.h"
#include "client/plotting/attention_figure.h"
#include "client/plotting/display_names.h"
#include "client/plotting/projection_figure.h"
#include "client/rendering/numbers.h"

namespace lengthwise::client {
namespace {

// As many as a picture of a usual size shows; the server averages the points between.
constexpr int kLossPoints = 300;

// Keeps the trials whose name of a kind is among the wanted; NOT_FOUND for one that none has.
template <typename NameOf>
absl::Status Keep(const std::vector<std::string>& wanted, const std::string& kind, NameOf name_of,
                  std::vector<PlotExperiment>& experiments) {
  if (wanted.empty()) return absl::OkStatus();
  std::set<std::string> names;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) names.insert(name_of(trial));
  }
  for (const std::string& one : wanted) {
    if (names.count(one) > 0) continue;
    return absl::NotFoundError(absl::StrCat(
        ExperimentNames(experiments), " has no ", kind, " \"", one, "\"",
        catalogue::Suggestion(one, std::vector<std::string>(names.begin(), names.end()))));
  }
  for (PlotExperiment& experiment : experiments) {
    const auto unwanted = [&](const v1::Trial& trial) {
      return std::find(wanted.begin(), wanted.end(), name_of(trial)) == wanted.end();
    };
    experiment.trials.erase(
        std::remove_if(experiment.trials.begin(), experiment.trials.end(), unwanted),
        experiment.trials.end());
  }
  return absl::OkStatus();
}

absl::Status Apply(const TrialFilter& filter, std::vector<PlotExperiment>& experiments) {
  using Trial = v1::Trial;
  absl::Status status = Keep(
      filter.tasks, "task", [](const Trial& trial) { return Label(trial.specification().task()); },
      experiments);
  if (status.ok()) {
    status = Keep(
        filter.networks, "network",
        [](const Trial& trial) { return Label(trial.specification().network()); }, experiments);
  }
  if (status.ok()) {
    status = Keep(
        filter.encodings, "encoding",
        [](const Trial& trial) { return Label(trial.specification().encoding()); }, experiments);
  }
  if (status.ok()) {
    std::vector<std::string> rates;
    for (const double rate : filter.learning_rates) rates.push_back(FormatExact(rate));
    status = Keep(
        rates, "learning rate",
        [](const Trial& trial) { return FormatExact(trial.specification().learning_rate()); },
        experiments);
  }
  if (!status.ok()) return status;
  bool any = false;
  for (const PlotExperiment& experiment : experiments) any |= !experiment.trials.empty();
  if (any) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no trial of ", ExperimentNames(experiments),
                   " has all of the wanted task, network, encoding and learning rate together"));
}

absl::StatusOr<std::vector<v1::Trial>> TrialsOf(Connection& connection,
                                                const std::string& experiment,
                                                const TrialFilter& filter) {
  if (filter.trials.empty()) {
    return connection.ListTrials(absl::StrCat("experiments/", experiment), "");
  }
  std::vector<v1::Trial> trials;
  for (const std::string& wanted : filter.trials) {
    auto trial = FindTrial(connection, absl::StrCat(experiment, "/", wanted));
    if (!trial.ok()) return trial.status();
    trials.push_back(*std::move(trial));
  }
  return trials;
}

// An experiment of which several trials are named is one, and a trial that is named twice, too.
void AddTo(std::vector<PlotExperiment>& experiments, const std::string& name,
           const std::vector<v1::Trial>& trials,
           const v1::QueryLengthAccuraciesResponse& accuracies) {
  auto experiment = std::find_if(experiments.begin(), experiments.end(),
                                 [&](const PlotExperiment& one) { return one.name == name; });
  if (experiment == experiments.end()) {
    experiment = experiments.insert(experiments.end(), PlotExperiment{.name = name});
  }
  for (const v1::Trial& trial : trials) {
    const bool is_new =
        std::none_of(experiment->trials.begin(), experiment->trials.end(),
                     [&](const v1::Trial& other) { return other.name() == trial.name(); });
    if (is_new) experiment->trials.push_back(trial);
  }
  experiment->accuracies.MergeFrom(accuracies);
}

// One trial's name asks for it alone.
std::string QueryName(const PlotExperiment& experiment) {
  return experiment.trials.size() == 1 ? experiment.trials[0].name()
                                       : absl::StrCat("experiments/", experiment.name);
}

PlotExperiment& Owner(const v1::Trial& trial, std::vector<PlotExperiment>& experiments) {
  return *std::find_if(experiments.begin(), experiments.end(), [&](const PlotExperiment& one) {
    return absl::StartsWith(trial.name(), absl::StrCat("experiments/", one.name, "/"));
  });
}

}  // namespace

absl::StatusOr<std::vector<PlotExperiment>> FetchExperiments(Connection& connection,
                                                             const std::vector<std::string>& names,
                                                             const TrialFilter& filter,
                                                             bool with_intervals) {
  std::vector<PlotExperiment> experiments;
  for (const std::string& name : names) {
    std::vector<v1::Trial> trials;
    std::string query;
    if (NamesTrial(name)) {
      auto trial = FindTrial(connection, name);
      if (!trial.ok()) return trial.status();
      query = trial->name();
      trials.push_back(*std::move(trial));
    } else {
      auto experiment = FindExperiment(connection, name);
      if (!experiment.ok()) return experiment.status();
      query = experiment->name();
      auto listed = TrialsOf(connection, ShortName(query), filter);
      if (!listed.ok()) return listed.status();
      trials = *std::move(listed);
    }
    auto accuracies = connection.QueryLengthAccuracies(query, with_intervals);
    if (!accuracies.ok()) return accuracies.status();
    AddTo(experiments, ShortName(query.substr(0, query.find("/trials/"))), trials, *accuracies);
  }
  if (absl::Status status = Apply(filter, experiments); !status.ok()) return status;
  return experiments;
}

absl::Status FetchLosses(Connection& connection, std::vector<PlotExperiment>& experiments) {
  for (PlotExperiment& experiment : experiments) {
    auto losses = connection.QueryLossCurves(QueryName(experiment), kLossPoints);
    if (!losses.ok()) return losses.status();
    experiment.losses = *std::move(losses);
  }
  return absl::OkStatus();
}

absl::Status FetchAttention(Connection& connection, int length,
                            std::vector<PlotExperiment>& experiments) {
  for (const v1::Trial* trial : TrialsWithAttention(experiments)) {
    auto maps = connection.QueryAttentionMaps(trial->name(), length);
    if (!maps.ok()) return maps.status();
    Owner(*trial, experiments).attention_maps[trial->name()] = *std::move(maps);
  }
  return absl::OkStatus();
}

absl::Status FetchProjections(Connection& connection, std::vector<PlotExperiment>& experiments) {
  for (const v1::Trial* trial : TrialsWithProjections(experiments)) {
    auto projections = connection.QueryProjections(trial->name());
    if (!projections.ok()) return projections.status();
    Owner(*trial, experiments).projections[trial->name()] = *std::move(projections);
  }
  return absl::OkStatus();
}

absl::Status FetchAnalyses(Connection& connection, std::vector<PlotExperiment>& experiments) {
  for (PlotExperiment& experiment : experiments) {
    auto analyses = connection.QueryAnalyses(QueryName(experiment));
    if (!analyses.ok()) return analyses.status();
    experiment.analyses = *std::move(analyses);
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::client
