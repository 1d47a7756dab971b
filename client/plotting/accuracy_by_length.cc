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

absl::StatusOr<Figure> AccuracyByLengthFigure(const std::vector<PlotExperiment>& experiments) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  Figure figure{.kind = "accuracy_by_length",
                .title = absl::StrCat("Accuracy by length: ", ExperimentNames(experiments)),
                .x = {.label = "input length", .ticks = Axis::Ticks::kCounts},
                .y = AccuracyAxis("token accuracy")};
  Averaging averaging;
  for (const v1::Component* task : TasksOf(groups)) {
    if (ComparedByLoss(*task) != ComparedByLoss(*TasksOf(groups)[0])) {
      return absl::InvalidArgumentError(
          "one picture shows accuracies or errors, and these experiments have both; plot them one "
          "by one");
    }
    figure.x.label = AxisTitle(*task);
    averaging.is_median = ComparedByLoss(*task);
    figure.y =
        averaging.is_median ? Axis{.label = LossTitle(*task)} : AccuracyAxis(AccuracyTitle(*task));
  }
  const bool is_loss = averaging.is_median;
  const std::string axis = groups.empty() ? "length" : OwnAxis(*groups[0].task).value_or("length");
  if (figure.x.label != "input length") {
    figure.title = absl::StrCat(is_loss ? "Error by " : "Accuracy by ", figure.x.label, ": ",
                                ExperimentNames(experiments));
  }
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
        const auto& scores = is_loss ? measured.losses() : measured.accuracies();
        for (int i = 0; i < std::min(measured.lengths_size(), scores.size()); ++i) {
          curve[measured.lengths(i)] = scores.Get(i);
        }
        curves.Add(curve);
      }
      Series series{.name = group.name,
                    .style = group.style,
                    .points = is_loss ? curves.Median() : curves.Mean()};
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
  figure.shaded_label = ShadedLabel(training, axis);
  if (is_loss) SetLossAxis(figure);
  figure.caption = MissingTrials(experiments);
  Describe(averaging, is_loss ? kLowestUnseen : kBestUnseen, figure);
  return figure;
}

}  // namespace lengthwise::client
