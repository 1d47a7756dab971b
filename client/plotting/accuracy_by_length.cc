#include "client/plotting/accuracy_by_length.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/plotting/display_names.h"
#include "client/plotting/evaluation_metrics.h"
#include "client/plotting/task_panels.h"
#include "client/rendering/text.h"

namespace lengthwise::client {
namespace {

constexpr char kBestUnseen[] = "the highest mean accuracy on lengths not seen in training";
constexpr char kLowestUnseen[] = "the lowest mean error on what training did not show";

// Widens the range of a panel's x axis to its points.
void Widen(const std::vector<SeriesPoint>& points, double& low, double& high) {
  for (const SeriesPoint& point : points) {
    low = std::min(low, point.x);
    high = std::max(high, point.x);
  }
}

// What the panels' shaded parts are.
std::string ShadedLabel(const std::set<std::pair<double, double>>& training,
                        const std::string& axis) {
  if (training.size() != 1) return absl::StrCat(axis, "s seen in training");
  const auto& [first, last] = *training.begin();
  if (first == last) return absl::StrFormat("seen in training: %s %.0f", axis, last);
  return absl::StrFormat("seen in training: %ss %.0f to %.0f", axis, first, last);
}

}  // namespace

absl::StatusOr<Figure> AccuracyByLengthFigure(const std::vector<PlotExperiment>& experiments,
                                              const std::string& metric) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  const std::vector<const v1::Component*> tasks = TasksOf(groups);
  const auto shown = ChooseMetric(experiments, tasks, metric);
  if (!shown.ok()) return shown.status();
  Figure figure{.kind = "accuracy_by_length",
                .title = absl::StrCat("Accuracy by length: ", ExperimentNames(experiments)),
                .x = {.label = "input length", .ticks = Axis::Ticks::kCounts},
                .y = shown->axis};
  Averaging averaging{.is_median = shown->is_median};
  if (!tasks.empty()) figure.x.label = AxisTitle(*tasks.back());
  const std::string axis = groups.empty() ? "length" : OwnAxis(*groups[0].task).value_or("length");
  if (!metric.empty() || figure.x.label != "input length") {
    std::string what = IsAccuracy(shown->name) ? "accuracy" : "error";
    if (!metric.empty()) what = figure.y.label;
    figure.title =
        absl::StrCat(Capitalized(what), " by ", figure.x.label, ": ", ExperimentNames(experiments));
  }
  double shortest = HUGE_VAL;
  double longest = -HUGE_VAL;
  std::set<std::pair<double, double>> training;
  for (const v1::Component* task : tasks) {
    Panel panel{.title = TaskTitle(*task)};
    for (const TrialGroup& group : groups) {
      if (Label(*group.task) != Label(*task)) continue;
      const SeedGroup* seeds = BestRate(group, FinalScore(*group.experiment));
      if (seeds == nullptr) continue;
      const auto finals = FinalEvaluations(*group.experiment);
      SeedCurves curves;
      for (const v1::Trial* trial : seeds->trials) {
        const auto found = finals.find(trial->name());
        if (found == finals.end()) continue;
        curves.Add(ByLength(*found->second, shown->name));
      }
      Series series{.name = group.name,
                    .style = group.style,
                    .points = averaging.is_median ? curves.Median() : curves.Mean()};
      if (series.points.empty()) continue;
      Widen(series.points, shortest, longest);
      averaging.most_seeds = std::max(averaging.most_seeds, curves.size());
      averaging.several_rates |= group.rates.size() > 1;
      panel.series.push_back(std::move(series));
    }
    if (panel.series.empty()) continue;
    panel.shaded = TrainingLengths(groups, *task);
    if (panel.shaded.has_value()) training.insert(*panel.shaded);
    if (const auto guess = GuessReference(*task);
        guess.has_value() && shown->name == MainMetric(*task)) {
      panel.references.push_back(*guess);
    }
    figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) return NoFinalEvaluation(experiments);
  if (absl::Status status = CheckPanels(figure.panels.size()); !status.ok()) return status;
  figure.columns = PanelColumns(figure.panels.size());
  // An axis from 0 where it makes little difference reads better.
  if (shortest < 0.15 * longest) shortest = 0;
  if (shortest == longest) shortest = longest - 1;
  figure.x.range = {shortest, longest};
  for (Panel& panel : figure.panels) {
    if (panel.shaded.has_value() && panel.shaded->first <= 1) panel.shaded->first = shortest;
  }
  figure.shaded_label = ShadedLabel(training, axis);
  if (!IsAccuracy(shown->name)) SetLossAxis(figure);
  figure.caption = MissingTrials(experiments);
  Describe(averaging, averaging.is_median ? kLowestUnseen : kBestUnseen, figure);
  return figure;
}

}  // namespace lengthwise::client
