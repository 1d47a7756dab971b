#include "client/plotting/accuracy_over_steps.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/plotting/display_names.h"
#include "client/plotting/evaluation_metrics.h"
#include "client/plotting/task_panels.h"
#include "client/rendering/text.h"

namespace lengthwise::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The evaluations of a trial during training, by step; points into the experiment.
using Evaluations = std::map<int64_t, const v1::LengthAccuracies*>;

std::map<std::string, Evaluations> EvaluationsOf(const PlotExperiment& experiment) {
  std::map<std::string, Evaluations> all;
  for (const auto& evaluation : experiment.accuracies.evaluations()) {
    if (evaluation.accuracies().final()) continue;
    all[evaluation.trial()][evaluation.step()] = &evaluation.accuracies();
  }
  return all;
}

std::map<double, double> OverSteps(const Evaluations& evaluations, const std::string& metric,
                                   int32_t length) {
  std::map<double, double> curve;
  for (const auto& [step, measured] : evaluations) {
    const std::map<double, double> by_length = ByLength(*measured, metric);
    const auto found = by_length.find(length);
    if (found != by_length.end()) curve[static_cast<double>(step)] = found->second;
  }
  return curve;
}

std::vector<SeriesPoint> Line(const std::map<double, double>& curve) {
  std::vector<SeriesPoint> points;
  for (const auto& [x, y] : curve) points.push_back({x, y, y, y});
  return points;
}

// The lines of one group at one length.
void AddLines(const TrialGroup& group, const SeedGroup& seeds,
              const std::map<std::string, Evaluations>& evaluations, const std::string& metric,
              int32_t length, Averaging& averaging, Panel& panel) {
  SeedCurves curves;
  std::vector<Series> thin;
  for (const v1::Trial* trial : seeds.trials) {
    const auto found = evaluations.find(trial->name());
    if (found == evaluations.end()) continue;
    const std::map<double, double> curve = OverSteps(found->second, metric, length);
    if (curve.empty()) continue;
    curves.Add(curve);
    thin.push_back({.style = group.style, .faint = true, .points = Line(curve)});
  }
  Series thick{.name = group.name,
               .style = group.style,
               .points = averaging.is_median ? curves.Median() : curves.Mean()};
  if (thick.points.empty()) return;
  // The thin lines show the spread.
  for (SeriesPoint& point : thick.points) point.low = point.high = point.y;
  averaging.most_seeds = std::max(averaging.most_seeds, curves.size());
  averaging.several_rates |= group.rates.size() > 1;
  if (thin.size() > 1) std::move(thin.begin(), thin.end(), std::back_inserter(panel.series));
  panel.series.push_back(std::move(thick));
}

// "30 digits, seen in training".
std::string PanelTitle(const TrialGroup& group, int32_t length, bool name_task) {
  const v1::Evaluation& evaluation =
      group.rates.front().trials.front()->specification().evaluation();
  return absl::StrCat(name_task ? absl::StrCat(TaskTitle(*group.task), ", ") : "",
                      LengthTitle(*group.task, length),
                      length <= evaluation.seen_up_to() ? ", seen in training" : "");
}

}  // namespace

absl::StatusOr<Figure> AccuracyOverStepsFigure(const std::vector<PlotExperiment>& experiments,
                                               const std::string& metric, int32_t length) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  const std::vector<const v1::Component*> tasks = TasksOf(groups);
  const auto shown = ChooseMetric(experiments, tasks, metric);
  if (!shown.ok()) return shown.status();
  std::map<const PlotExperiment*, std::map<std::string, Evaluations>> evaluations;
  for (const PlotExperiment& experiment : experiments) {
    evaluations[&experiment] = EvaluationsOf(experiment);
  }
  Figure figure{.kind = "accuracy_over_steps", .x = {.label = "training step"}, .y = shown->axis};
  Averaging averaging{.is_median = shown->is_median};
  std::set<int32_t> recorded;
  for (const v1::Component* task : tasks) {
    // Of the groups the shown learning rate, and of all these the lengths.
    std::vector<std::pair<const TrialGroup*, const SeedGroup*>> lines;
    std::set<int32_t> lengths;
    for (const TrialGroup& group : groups) {
      if (Label(*group.task) != Label(*task)) continue;
      const std::map<std::string, Evaluations>& of_trials = evaluations[group.experiment];
      const SeedGroup* seeds = BestRate(group, [&](const v1::Trial& trial) {
        const auto found = of_trials.find(trial.name());
        return found == of_trials.end() ? kNone
                                        : EvaluationScore(trial, *found->second.rbegin()->second);
      });
      if (seeds == nullptr) continue;
      lines.emplace_back(&group, seeds);
      for (const v1::Trial* trial : seeds->trials) {
        const auto found = of_trials.find(trial->name());
        if (found == of_trials.end()) continue;
        for (const auto& [step, measured] : found->second) {
          lengths.insert(measured->lengths().begin(), measured->lengths().end());
        }
      }
    }
    recorded.insert(lengths.begin(), lengths.end());
    for (const int32_t one : lengths) {
      if (length != 0 && one != length) continue;
      Panel panel{.title = PanelTitle(*lines.front().first, one, tasks.size() > 1)};
      for (const auto& [group, seeds] : lines) {
        AddLines(*group, *seeds, evaluations[group->experiment], shown->name, one, averaging,
                 panel);
      }
      if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
    }
  }
  if (figure.panels.empty() && !recorded.empty() && recorded.count(length) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("no evaluations during training at length ",
                                                   length, "; there are those at ",
                                                   absl::StrJoin(recorded, ", ")));
  }
  if (figure.panels.empty()) return NoIntervalEvaluation(experiments);
  if (!CheckPanels(figure.panels.size()).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a picture has no room for ", figure.panels.size(),
                     " panels, one a task and length; choose with --task or --length"));
  }
  figure.title =
      absl::StrCat(Capitalized(figure.y.label), " over training: ", ExperimentNames(experiments));
  figure.columns = PanelColumns(figure.panels.size());
  SetStepAxis(figure);
  if (!IsAccuracy(shown->name)) SetLossAxis(figure);
  if (averaging.most_seeds > 1) {
    figure.caption = absl::StrCat("Thin lines: trials. Thick lines: their ",
                                  averaging.is_median ? "median" : "mean",
                                  ", up to the step that all have reached.");
    averaging.most_seeds = 1;
  }
  Describe(averaging, "the best last evaluation during training", figure);
  return figure;
}

}  // namespace lengthwise::client
