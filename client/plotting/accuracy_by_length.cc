#include "client/plotting/accuracy_by_length.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"

namespace lengthwise::client {
namespace {

constexpr char kBestUnseen[] = "the highest mean accuracy on lengths not seen in training";

// Widens the range of a panel's x axis to its points.
void Widen(const std::vector<SeriesPoint>& points, double& low, double& high) {
  for (const SeriesPoint& point : points) {
    low = std::min(low, point.x);
    high = std::max(high, point.x);
  }
}

}  // namespace

absl::StatusOr<Figure> AccuracyByLengthFigure(const std::vector<PlotExperiment>& experiments) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  Figure figure{.kind = "accuracy_by_length",
                .title = absl::StrCat("Accuracy by length: ", ExperimentNames(experiments)),
                .x = {.label = "input length"},
                .y = AccuracyAxis("token accuracy")};
  for (const v1::Component* task : TasksOf(groups)) {
    figure.x.label = AxisTitle(*task);
    figure.y.label = AccuracyTitle(*task);
  }
  if (figure.x.label != "input length") {
    figure.title = absl::StrCat("Accuracy by ", figure.x.label, ": ", ExperimentNames(experiments));
  }
  Averaging averaging;
  double shortest = HUGE_VAL;
  double longest = -HUGE_VAL;
  std::set<std::pair<double, double>> training;
  for (const v1::Component* task : TasksOf(groups)) {
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
        const v1::LengthAccuracies& measured = *found->second;
        std::map<double, double> curve;
        for (int i = 0; i < std::min(measured.lengths_size(), measured.accuracies_size()); ++i) {
          curve[measured.lengths(i)] = measured.accuracies(i);
        }
        curves.Add(curve);
      }
      Series series{.name = group.name, .style = group.style, .points = curves.Mean()};
      if (series.points.empty()) continue;
      Widen(series.points, shortest, longest);
      averaging.most_seeds = std::max(averaging.most_seeds, curves.size());
      averaging.several_rates |= group.rates.size() > 1;
      panel.series.push_back(std::move(series));
    }
    if (panel.series.empty()) continue;
    panel.shaded = TrainingLengths(groups, *task);
    if (panel.shaded.has_value()) training.insert(*panel.shaded);
    if (const auto guess = GuessReference(*task)) panel.references.push_back(*guess);
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
  figure.shaded_label = training.size() == 1
                            ? absl::StrFormat("seen in training: lengths %.0f to %.0f",
                                              training.begin()->first, training.begin()->second)
                            : "lengths seen in training";
  figure.caption = MissingTrials(experiments);
  Describe(averaging, kBestUnseen, figure);
  return figure;
}

}  // namespace lengthwise::client
