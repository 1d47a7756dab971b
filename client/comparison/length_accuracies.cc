#include "client/comparison/length_accuracies.h"

#include <algorithm>
#include <string>

#include "client/rendering/component_label.h"
#include "statistics/seed_statistic.h"

namespace lengthwise::client {
namespace {

using SummaryCell = v1::SummarizeExperimentResponse::Cell;

bool IsOf(const v1::Trial& trial, const SummaryCell& cell) {
  const v1::TrialSpecification& specification = trial.specification();
  return Label(specification.task()) == cell.task() &&
         Label(specification.network()) == cell.network() &&
         Label(specification.encoding()) == cell.encoding() &&
         specification.learning_rate() == cell.learning_rate();
}

}  // namespace

LengthAccuracyStatistics SumUpLengthAccuracies(
    const PublishedTable& table, const v1::SummarizeExperimentResponse& summary,
    const std::vector<v1::Trial>& trials, const v1::QueryLengthAccuraciesResponse& accuracies) {
  std::map<std::string, const v1::LengthAccuracies*> finals;
  for (const auto& evaluation : accuracies.evaluations()) {
    if (evaluation.accuracies().final()) finals[evaluation.trial()] = &evaluation.accuracies();
  }
  std::map<std::pair<int, int32_t>, std::vector<double>> values;
  for (const v1::Trial& trial : trials) {
    const auto found = finals.find(trial.name());
    if (found == finals.end() || trial.state() != v1::SUCCEEDED) continue;
    const auto cell =
        std::find_if(summary.cells().begin(), summary.cells().end(),
                     [&](const SummaryCell& candidate) { return IsOf(trial, candidate); });
    if (cell == summary.cells().end()) continue;
    const v1::LengthAccuracies& measured = *found->second;
    for (int i = 0; i < std::min(measured.lengths_size(), measured.accuracies_size()); ++i) {
      const int32_t length = measured.lengths(i);
      const bool is_wanted =
          std::any_of(table.columns.begin(), table.columns.end(),
                      [&](const PublishedColumn& column) { return column.length == length; });
      if (!is_wanted) continue;
      values[{static_cast<int>(cell - summary.cells().begin()), length}].push_back(
          measured.accuracies(i));
    }
  }
  LengthAccuracyStatistics at_lengths;
  for (const auto& [place, of_trials] : values) {
    at_lengths[place] = statistics::SeedStatistic(of_trials);
  }
  return at_lengths;
}

}  // namespace lengthwise::client
