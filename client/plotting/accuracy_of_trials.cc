#include "client/plotting/accuracy_of_trials.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"

namespace lengthwise::client {
namespace {

// Black, which no group of a few has.
constexpr SeriesStyle kBestTrial = {.color = 6, .marker = 0};

std::vector<SeriesPoint> Curve(const v1::LengthAccuracies& measured) {
  std::map<double, double> curve;
  for (int i = 0; i < std::min(measured.lengths_size(), measured.accuracies_size()); ++i) {
    curve[measured.lengths(i)] = measured.accuracies(i);
  }
  std::vector<SeriesPoint> points;
  for (const auto& [x, y] : curve) points.push_back({x, y, y, y});
  return points;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Variance(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}

// Every weight seed with every data seed.
struct SeedGrid {
  std::set<uint64_t> weights, data;
  // A trial's score, by its weight seed.
  std::map<uint64_t, std::vector<double>> scores;

  bool varies_both() const { return weights.size() > 1 && data.size() > 1; }
  int Number(uint64_t weight_seed) const {
    return static_cast<int>(std::distance(weights.begin(), weights.find(weight_seed)));
  }
  // "18.2 points between weight seeds, 4.0 between data seeds": standard deviations of the means
  // over data seeds, and around them.
  std::string Spread() const {
    std::vector<double> means, within;
    for (const auto& [seed, of_seed] : scores) {
      means.push_back(Mean(of_seed));
      within.push_back(Variance(of_seed));
    }
    return absl::StrFormat("%.1f points between weight seeds, %.1f between data seeds",
                           100 * std::sqrt(Variance(means)), 100 * std::sqrt(Mean(within)));
  }
};

SeedGrid GridOf(const SeedGroup& seeds, const TrialScore& score) {
  SeedGrid grid;
  for (const v1::Trial* trial : seeds.trials) {
    const v1::TrialSpecification& specification = trial->specification();
    grid.weights.insert(specification.weight_seed());
    grid.data.insert(specification.data_seed());
    if (const double value = score(*trial); !std::isnan(value)) {
      grid.scores[specification.weight_seed()].push_back(value);
    }
  }
  return grid;
}

void SetRange(Figure& figure) {
  double shortest = HUGE_VAL, longest = -HUGE_VAL;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      shortest = std::min(shortest, series.points.front().x);
      longest = std::max(longest, series.points.back().x);
    }
  }
  if (shortest < 0.15 * longest) shortest = 0;
  if (shortest == longest) shortest = longest - 1;
  figure.x.range = {shortest, longest};
  for (Panel& panel : figure.panels) {
    if (panel.shaded.has_value() && panel.shaded->first <= 1) panel.shaded->first = shortest;
  }
}

}  // namespace

absl::StatusOr<Figure> AccuracyOfTrialsFigure(const std::vector<PlotExperiment>& experiments) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  const std::vector<const v1::Component*> tasks = TasksOf(groups);
  Figure figure{.kind = "accuracy_of_trials", .y = AccuracyAxis("")};
  std::string spreads;
  for (const TrialGroup& group : groups) {
    figure.x.label = AxisTitle(*group.task);
    figure.x.ticks = Axis::Ticks::kCounts;
    figure.y.label = AccuracyTitle(*group.task);
    const TrialScore score = FinalScore(*group.experiment);
    const SeedGroup* seeds = BestRate(group, score);
    if (seeds == nullptr) continue;
    const SeedGrid grid = GridOf(*seeds, score);
    const auto finals = FinalEvaluations(*group.experiment);
    Panel panel{.title = tasks.size() > 1 ? absl::StrCat(TaskTitle(*group.task), ", ", group.name)
                                          : group.name};
    const v1::Trial* best = BestTrial({.rates = {*seeds}}, score);
    for (const v1::Trial* trial : seeds->trials) {
      const auto found = finals.find(trial->name());
      if (found == finals.end() || found->second->lengths().empty()) continue;
      const uint64_t weights = trial->specification().weight_seed();
      Series series{.name = "a trial", .faint = true, .points = Curve(*found->second)};
      if (grid.varies_both()) {
        series.name = absl::StrCat("weight seed ", weights);
        series.style = {.color = grid.Number(weights), .marker = grid.Number(weights)};
      }
      if (trial == best && seeds->trials.size() > 1) {
        panel.series.push_back({.name = "the best", .style = kBestTrial, .points = series.points});
      }
      panel.series.push_back(std::move(series));
    }
    if (panel.series.empty()) continue;
    if (grid.varies_both()) {
      absl::StrAppend(&spreads, spreads.empty() ? "" : "; ", panel.title, ": ", grid.Spread());
    }
    panel.shaded = TrainingLengths(groups, *group.task);
    figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) return NoFinalEvaluation(experiments);
  if (absl::Status status = CheckPanels(figure.panels.size()); !status.ok()) return status;
  figure.title = absl::StrCat("Every trial's ", figure.y.label, " by ", figure.x.label, ": ",
                              ExperimentNames(experiments));
  figure.columns = PanelColumns(figure.panels.size());
  figure.shaded_label = "seen in training";
  SetRange(figure);
  figure.caption = "A thin line a trial; the best has the highest mean on what was not seen.";
  if (!spreads.empty()) {
    absl::StrAppend(&figure.caption, " Standard deviation of that mean: ", spreads, ".");
  }
  const std::string missing = MissingTrials(experiments);
  if (!missing.empty()) absl::StrAppend(&figure.caption, " ", missing);
  return figure;
}

}  // namespace lengthwise::client
