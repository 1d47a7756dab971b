#include "client/plotting/accuracy_over_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"

namespace lengthwise::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The evaluations of a trial during training.
struct Progress {
  std::map<double, double> seconds;   // by step
  std::map<double, double> accuracy;  // on unseen lengths, by step
};

std::map<std::string, Progress> ProgressOfTrials(const PlotExperiment& experiment) {
  std::map<std::string, const v1::Trial*> trials;
  for (const v1::Trial& trial : experiment.trials) trials[trial.name()] = &trial;
  std::map<std::string, Progress> result;
  for (const auto& evaluation : experiment.accuracies.evaluations()) {
    const auto trial = trials.find(evaluation.trial());
    if (trial == trials.end() || evaluation.accuracies().final()) continue;
    const double unseen = UnseenAccuracy(*trial->second, evaluation.accuracies());
    if (std::isnan(unseen)) continue;
    Progress& progress = result[evaluation.trial()];
    const auto step = static_cast<double>(evaluation.step());
    progress.seconds[step] = evaluation.accuracies().training_seconds();
    progress.accuracy[step] = unseen;
  }
  return result;
}

// Mean over seeds at each step, placed at the mean of the seconds.
std::vector<SeriesPoint> OverTime(const SeedGroup& seeds,
                                  const std::map<std::string, Progress>& progress,
                                  Averaging& averaging) {
  SeedCurves seconds;
  SeedCurves accuracies;
  for (const v1::Trial* trial : seeds.trials) {
    const auto found = progress.find(trial->name());
    if (found == progress.end()) continue;
    seconds.Add(found->second.seconds);
    accuracies.Add(found->second.accuracy);
  }
  averaging.most_seeds = std::max(averaging.most_seeds, accuracies.size());
  std::vector<SeriesPoint> points = accuracies.Mean();
  const std::vector<SeriesPoint> times = seconds.Mean();  // at the same steps
  for (size_t i = 0; i < points.size(); ++i) points[i].x = times[i].y;
  return points;
}

absl::Status NoProgress(const std::vector<PlotExperiment>& experiments) {
  bool evaluated = false;
  for (const PlotExperiment& experiment : experiments) {
    for (const auto& evaluation : experiment.accuracies.evaluations()) {
      evaluated |= !evaluation.accuracies().final();
    }
  }
  if (!evaluated) return NoIntervalEvaluation(experiments);
  return absl::FailedPreconditionError(absl::StrCat(
      "the evaluations during training of ", ExperimentNames(experiments),
      " have no length above evaluation.seen_up_to: give longer evaluation.interval_lengths, or a "
      "smaller seen_up_to"));
}

// Writes seconds as minutes or hours where that is shorter.
void ScaleTime(Figure& figure, double longest_seconds) {
  const double unit = longest_seconds > 3 * 3600 ? 3600 : longest_seconds > 600 ? 60 : 1;
  for (Panel& panel : figure.panels) {
    for (Series& series : panel.series) {
      for (SeriesPoint& point : series.points) point.x /= unit;
    }
  }
  figure.x.label = absl::StrCat("training time (wall clock, ",
                                unit == 3600 ? "hours"
                                : unit == 60 ? "minutes"
                                             : "seconds",
                                ")");
  figure.x.range = {0, longest_seconds / unit};
}

}  // namespace

absl::StatusOr<Figure> AccuracyOverTimeFigure(const std::vector<PlotExperiment>& experiments) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  std::map<const PlotExperiment*, std::map<std::string, Progress>> progress;
  for (const PlotExperiment& experiment : experiments) {
    progress[&experiment] = ProgressOfTrials(experiment);
  }
  Figure figure{
      .kind = "accuracy_over_time",
      .title = absl::StrCat("Accuracy over training time: ", ExperimentNames(experiments)),
      .y = AccuracyAxis("token accuracy on lengths not seen")};
  for (const v1::Component* task : TasksOf(groups)) {
    figure.y.label = absl::StrCat(AccuracyTitle(*task), OwnAxis(*task).has_value()
                                                            ? " on what training did not show"
                                                            : " on lengths not seen");
  }
  Averaging averaging;
  double longest = 0;
  for (const v1::Component* task : TasksOf(groups)) {
    Panel panel{.title = TaskTitle(*task)};
    for (const TrialGroup& group : groups) {
      if (Label(*group.task) != Label(*task)) continue;
      const std::map<std::string, Progress>& of_trials = progress[group.experiment];
      const SeedGroup* seeds = BestRate(group, [&](const v1::Trial& trial) {
        const auto found = of_trials.find(trial.name());
        return found == of_trials.end() ? kNone : found->second.accuracy.rbegin()->second;
      });
      if (seeds == nullptr) continue;
      Series series{.name = group.name,
                    .style = group.style,
                    .points = OverTime(*seeds, of_trials, averaging)};
      if (series.points.empty()) continue;
      averaging.several_rates |= group.rates.size() > 1;
      longest = std::max(longest, series.points.back().x);
      panel.series.push_back(std::move(series));
    }
    if (panel.series.empty()) continue;
    if (const auto guess = GuessReference(*task)) panel.references.push_back(*guess);
    figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) return NoProgress(experiments);
  if (absl::Status status = CheckPanels(figure.panels.size()); !status.ok()) return status;
  if (longest <= 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the evaluations of ", ExperimentNames(experiments),
        " do not say how long training had taken; workers of an earlier version made them"));
  }
  figure.columns = PanelColumns(figure.panels.size());
  ScaleTime(figure, longest);
  figure.caption = "Evaluations are not counted as training time. Lines end with the first seed.";
  Describe(averaging, "the highest such accuracy at the last evaluation during training", figure);
  return figure;
}

}  // namespace lengthwise::client
