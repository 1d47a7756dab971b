#include "client/comparison/length_accuracies.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "client/rendering/component_label.h"

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

SeedStatistic StatisticOf(const std::vector<double>& values) {
  SeedStatistic statistic;
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  statistic.set_trials(static_cast<int>(values.size()));
  statistic.set_mean(sum / count);
  for (const double value : values) squares += std::pow(value - statistic.mean(), 2);
  statistic.set_deviation(values.size() < 2 ? 0 : std::sqrt(squares / (count - 1)));
  statistic.set_min(*std::min_element(values.begin(), values.end()));
  statistic.set_max(*std::max_element(values.begin(), values.end()));
  return statistic;
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
  LengthAccuracyStatistics statistics;
  for (const auto& [place, of_trials] : values) statistics[place] = StatisticOf(of_trials);
  return statistics;
}

}  // namespace lengthwise::client
