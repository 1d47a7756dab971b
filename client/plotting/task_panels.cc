#include "client/plotting/task_panels.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/plotting/display_names.h"
#include "client/rendering/numbers.h"
#include "server/aggregation/statistics.h"

namespace lengthwise::client {
namespace {

constexpr size_t kMostPanels = 16;
// What a logarithmic axis of losses shows.
constexpr double kMostDecades = 7;

// The curve's value, on the line between its neighbours where it has none at `x`; nullopt beyond
// its ends.
std::optional<double> At(const std::map<double, double>& curve, double x) {
  const auto after = curve.lower_bound(x);
  if (after == curve.end()) return std::nullopt;
  if (after->first == x) return after->second;
  if (after == curve.begin()) return std::nullopt;
  const auto before = std::prev(after);
  const double share = (x - before->first) / (after->first - before->first);
  return before->second + share * (after->second - before->second);
}

}  // namespace

Axis AccuracyAxis(const std::string& label) {
  return {.label = label, .ticks = Axis::Ticks::kPercent, .range = {{0.0, 1.0}}};
}

void SetStepAxis(Figure& figure) {
  double last_step = 1;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      for (const SeriesPoint& point : series.points) last_step = std::max(last_step, point.x);
    }
  }
  figure.x.range = {0, last_step};
}

absl::Status NoIntervalEvaluation(const std::vector<PlotExperiment>& experiments) {
  bool asked = false;
  for (const PlotExperiment& experiment : experiments) {
    for (const v1::Trial& trial : experiment.trials) {
      asked |= trial.specification().evaluation().every_steps() > 0;
    }
  }
  const std::string names = ExperimentNames(experiments);
  return absl::FailedPreconditionError(
      asked ? absl::StrCat("no trial of ", names, " has been evaluated during training yet")
            : absl::StrCat(names,
                           " has no evaluations during training; evaluation.every_steps in its "
                           "specification records them"));
}

absl::Status NoFinalEvaluation(const std::vector<PlotExperiment>& experiments) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no trial of ", ExperimentNames(experiments),
      " has been evaluated in full yet; that is done at the end of training (`lengthwise watch ",
      experiments.empty() ? "" : experiments[0].name, "` shows how far they are)"));
}

std::string MissingTrials(const std::vector<PlotExperiment>& experiments) {
  size_t evaluated = 0;
  size_t trials = 0;
  for (const PlotExperiment& experiment : experiments) {
    const auto finals = FinalEvaluations(experiment);
    trials += experiment.trials.size();
    for (const v1::Trial& trial : experiment.trials) evaluated += finals.count(trial.name());
  }
  if (evaluated == trials) return "";
  return absl::StrCat(trials - evaluated, " of ", Counted(static_cast<int64_t>(trials), "trial"),
                      trials - evaluated == 1 ? " has" : " have", " no final evaluation.");
}

std::vector<std::pair<double, std::vector<double>>> SeedCurves::Values() const {
  std::vector<std::pair<double, std::vector<double>>> values;
  if (curves_.empty()) return values;
  const auto last = [](const auto& curve) { return curve.rbegin()->first; };
  const auto& shortest =
      *std::min_element(curves_.begin(), curves_.end(),
                        [&](const auto& a, const auto& b) { return last(a) < last(b); });
  for (const auto& [x, y] : shortest) {
    std::vector<double> at_x;
    for (const auto& curve : curves_) {
      if (const std::optional<double> value = At(curve, x)) at_x.push_back(*value);
    }
    if (at_x.size() == curves_.size()) values.emplace_back(x, std::move(at_x));
  }
  return values;
}

std::vector<SeriesPoint> SeedCurves::Mean() const {
  std::vector<SeriesPoint> points;
  for (const auto& [x, values] : Values()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    points.push_back({.x = x, .y = server::Mean(values), .low = *low, .high = *high});
  }
  return points;
}

std::vector<SeriesPoint> SeedCurves::Median() const {
  std::vector<SeriesPoint> points;
  for (const auto& [x, values] : Values()) {
    points.push_back({.x = x,
                      .y = server::Quantile(values, 0.5),
                      .low = server::Quantile(values, 0.1),
                      .high = server::Quantile(values, 0.9)});
  }
  return points;
}

void SetLossAxis(Figure& figure) {
  double lowest = HUGE_VAL;
  double highest = 0;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      for (const SeriesPoint& point : series.points) {
        highest = std::max(highest, point.high);
        if (point.low > 0) lowest = std::min(lowest, point.low);
      }
    }
  }
  if (highest <= 10 * lowest) {
    figure.y.range = {0, highest > 0 ? highest * 1.05 : 1};
    return;
  }
  figure.y.scale = Axis::Scale::kLog10;
  lowest = std::max(lowest, highest * std::pow(10, -kMostDecades)) / 1.2;
  figure.y.range = {lowest, highest * 1.2};
  for (Panel& panel : figure.panels) {
    for (Series& series : panel.series) {
      for (SeriesPoint& point : series.points) {
        point.low = std::max(point.low, lowest);
        point.y = std::max(point.y, lowest);
        point.high = std::max(point.high, lowest);
      }
    }
  }
}

std::optional<Reference> GuessReference(const v1::Component& task) {
  const std::optional<double> accuracy = RandomAccuracy(task);
  // Where no guess is right there is no line to be above.
  if (!accuracy.has_value() || *accuracy == 0) return std::nullopt;
  return Reference{*accuracy, absl::StrFormat("random guess %.3g %%", *accuracy * 100)};
}

std::optional<std::pair<double, double>> TrainingLengths(const std::vector<TrialGroup>& groups,
                                                         const v1::Component& task) {
  std::optional<std::pair<double, double>> lengths;
  for (const TrialGroup& group : groups) {
    if (Label(*group.task) != Label(task)) continue;
    for (const SeedGroup& seeds : group.rates) {
      for (const v1::Trial* trial : seeds.trials) {
        const v1::TrialSpecification& specification = trial->specification();
        // Puzzles, of which training shows none of the evaluation's.
        if (specification.evaluation().seen_up_to() < 1) return std::nullopt;
        const v1::LengthRange& range = specification.training().lengths();
        const std::pair<double, double> of_trial =
            OwnAxis(task).has_value()
                ? std::pair<double, double>(1, specification.evaluation().seen_up_to())
                : std::pair<double, double>(range.min(), range.max());
        if (lengths.has_value() && *lengths != of_trial) return std::nullopt;
        lengths = of_trial;
      }
    }
  }
  if (!lengths.has_value() || lengths->second <= 0) return std::nullopt;
  return lengths;
}

int PanelColumns(size_t panels) {
  if (panels <= 3) return std::max(1, static_cast<int>(panels));
  return panels == 4 ? 2 : panels <= 6 || panels == 9 ? 3 : 4;
}

void Describe(const Averaging& averaging, const std::string& best_by, Figure& figure) {
  const auto add = [&](const std::string& sentence) {
    absl::StrAppend(&figure.caption, figure.caption.empty() ? "" : " ", sentence);
  };
  if (averaging.most_seeds > 1) {
    add(absl::StrCat(averaging.is_median ? "Median" : "Mean", " over up to ", averaging.most_seeds,
                     " seeds."));
    figure.band_caption = averaging.is_median ? "Bands: 10th to 90th percentile of the seeds."
                                              : "Bands: from the lowest to the highest seed.";
  }
  if (averaging.several_rates)
    add(absl::StrCat("Each line has the learning rate with ", best_by, "."));
}

absl::Status CheckPanels(size_t panels) {
  if (panels <= kMostPanels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a picture has room for ", kMostPanels,
                                                 " panels, one a task, and these are ", panels,
                                                 " tasks; choose some with --task"));
}

}  // namespace lengthwise::client
