#include "client/plotting/loss_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"

namespace lengthwise::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Loss or accuracy by step, by trial.
using Curves = std::map<std::string, std::map<double, double>>;

Curves CurvesOf(const PlotExperiment& experiment, bool of_accuracy) {
  Curves curves;
  for (const auto& curve : experiment.losses.curves()) {
    std::map<double, double>& by_step = curves[curve.trial()];
    const v1::TrainingPoints& points = curve.points();
    const auto& values = of_accuracy ? points.accuracies() : points.losses();
    for (int i = 0; i < std::min(points.steps_size(), values.size()); ++i) {
      if (!std::isfinite(values.Get(i))) continue;
      by_step[static_cast<double>(points.steps(i))] = values.Get(i);
    }
    if (by_step.empty()) curves.erase(curve.trial());
  }
  return curves;
}

// Points of a running mean over a curve of so many: an odd number, about a tenth.
size_t Window(size_t points) { return points < 10 ? 1 : points / 10 | 1; }

// The loss of a step depends on its length as much as on what was learned, which hides the curve.
// Means are over as many points on both sides, fewer towards the ends.
std::map<double, double> RunningMean(const std::map<double, double>& curve, size_t window) {
  const std::vector<std::pair<double, double>> points(curve.begin(), curve.end());
  std::map<double, double> result;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t reach = std::min({window / 2, i, points.size() - 1 - i});
    double sum = 0;
    for (size_t j = i - reach; j <= i + reach; ++j) sum += points[j].second;
    result[points[i].first] = sum / static_cast<double>(2 * reach + 1);
  }
  return result;
}

// The learning rate to show: by accuracy where trials have been evaluated, by loss where none has.
const SeedGroup* ShownRate(const TrialGroup& group, const Curves& losses) {
  const SeedGroup* seeds = BestRate(group, FinalScore(*group.experiment));
  if (seeds != nullptr) return seeds;
  return BestRate(group, [&](const v1::Trial& trial) {
    const auto found = losses.find(trial.name());
    return found == losses.end() ? kNone : -found->second.rbegin()->second;
  });
}

}  // namespace

absl::StatusOr<Figure> LossFigure(const std::vector<PlotExperiment>& experiments,
                                  const std::string& metric) {
  if (!metric.empty() && metric != "loss" && metric != "accuracy") {
    return absl::InvalidArgumentError(absl::StrCat("--metric: training does not record \"", metric,
                                                   "\"; there are loss, accuracy"));
  }
  const bool of_accuracy = metric == "accuracy";
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  std::map<const PlotExperiment*, Curves> losses, accuracies;
  for (const PlotExperiment& experiment : experiments) {
    losses[&experiment] = CurvesOf(experiment, /*of_accuracy=*/false);
    if (of_accuracy) accuracies[&experiment] = CurvesOf(experiment, of_accuracy);
  }
  Figure figure{.kind = "loss",
                .title = absl::StrCat(of_accuracy ? "Accuracy in training: " : "Training loss: ",
                                      ExperimentNames(experiments)),
                .x = {.label = "training step"},
                .y = of_accuracy ? AccuracyAxis("outputs of training batches that are right")
                                 : Axis{.label = "cross-entropy, nats"}};
  for (const v1::Component* task : TasksOf(groups)) {
    if (ComparedByLoss(*task) && !of_accuracy) figure.y.label = LossTitle(*task);
  }
  Averaging averaging;
  size_t widest = 1;
  for (const v1::Component* task : TasksOf(groups)) {
    Panel panel{.title = TaskTitle(*task)};
    for (const TrialGroup& group : groups) {
      if (Label(*group.task) != Label(*task)) continue;
      const Curves& of_trials = (of_accuracy ? accuracies : losses)[group.experiment];
      const SeedGroup* seeds = ShownRate(group, losses[group.experiment]);
      if (seeds == nullptr) continue;
      SeedCurves curves;
      for (const v1::Trial* trial : seeds->trials) {
        const auto found = of_trials.find(trial->name());
        if (found == of_trials.end()) continue;
        const size_t window = Window(found->second.size());
        widest = std::max(widest, window);
        curves.Add(RunningMean(found->second, window));
      }
      Series series{.name = group.name, .style = group.style, .points = curves.Mean()};
      if (series.points.empty()) continue;
      averaging.most_seeds = std::max(averaging.most_seeds, curves.size());
      averaging.several_rates |= group.rates.size() > 1;
      panel.series.push_back(std::move(series));
    }
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no trial of ", ExperimentNames(experiments),
        " has recorded a loss yet (training.report_every_steps says how often one does)"));
  }
  if (absl::Status status = CheckPanels(figure.panels.size()); !status.ok()) return status;
  figure.columns = PanelColumns(figure.panels.size());
  SetStepAxis(figure);
  if (!of_accuracy) SetLossAxis(figure);
  figure.caption =
      absl::StrCat(of_accuracy ? "Accuracy" : "Loss",
                   " on the training batches, up to the step that all seeds have reached.");
  if (widest > 1) {
    absl::StrAppend(&figure.caption, " Running mean over up to ", widest,
                    " recorded points, as each step has another length.");
  }
  Describe(averaging,
           "the highest mean accuracy on lengths not seen in training, or the lowest loss where "
           "nothing is evaluated yet",
           figure);
  return figure;
}

}  // namespace lengthwise::client
