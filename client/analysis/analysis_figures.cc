#include "client/analysis/analysis_figures.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/analysis/trial_sets.h"
#include "client/plotting/attention_figure.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"
#include "client/rendering/numbers.h"
#include "statistics/summary.h"

namespace lengthwise::client {
namespace {

constexpr char kAccuracy[] = "accuracy on what was not seen in training";

const v1::Component& TaskOf(const TrialSet& set) {
  return set.trials.front()->specification().task();
}

// "learn_0.2", with what else tells the set from `others` of its task.
std::string NameOf(const TrialSet& set, const std::vector<const TrialSet*>& others) {
  bool networks = false, rates = false;
  for (const TrialSet* other : others) {
    if (other->task != set.task) continue;
    networks |= other->network != set.network;
    rates |= other->network == set.network && other->encoding == set.encoding &&
             other->learning_rate != set.learning_rate;
  }
  return absl::StrCat(ShareLabels(others) ? absl::StrCat(set.experiment, ": ") : "",
                      networks ? absl::StrCat(set.network, ", ") : "",
                      EncodingTitle(set.trials.front()->specification().encoding()),
                      rates ? absl::StrCat(", ", set.learning_rate) : "");
}

// Of sets that differ in their learning rates alone, the one with the highest mean of `accuracies`;
// of equal ones the first.
std::vector<const TrialSet*> BestRates(const std::vector<const TrialSet*>& sets,
                                       const std::map<std::string, double>& accuracies) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::pair<double, const TrialSet*>> best;
  for (const TrialSet* set : sets) {
    std::vector<double> of_set;
    for (const v1::Trial* trial : set->trials) {
      const auto found = accuracies.find(trial->name());
      if (found != accuracies.end()) of_set.push_back(found->second);
    }
    const double score =
        of_set.empty() ? -std::numeric_limits<double>::infinity() : statistics::Mean(of_set);
    const auto [place, is_new] = best.emplace(
        Key(set->experiment, set->task, set->network, set->encoding), std::pair(score, set));
    if (!is_new && score > place->second.first) place->second = {score, set};
  }
  std::vector<const TrialSet*> chosen;
  for (const TrialSet* set : sets) {
    const auto& [score, kept] =
        best.at(Key(set->experiment, set->task, set->network, set->encoding));
    if (kept == set) chosen.push_back(set);
  }
  return chosen;
}

// One panel a task, in the order in which they come, with a series for each set that is best among
// learning rates.
class Panels {
 public:
  Panels(const std::vector<const TrialSet*>& sets, const std::map<std::string, double>& accuracies)
      : sets_(BestRates(sets, accuracies)), chose_rates_(sets_.size() < sets.size()) {}

  // Whether the set has a series.
  bool Shows(const TrialSet& set) const {
    return std::find(sets_.begin(), sets_.end(), &set) != sets_.end();
  }

  // Series of one name have one style in all panels. `set` is one that the figure shows.
  void Add(const TrialSet& set, Series series) {
    series.name = NameOf(set, sets_);
    const auto known = std::find(names_.begin(), names_.end(), series.name);
    const auto number = static_cast<int>(known - names_.begin());
    if (known == names_.end()) names_.push_back(series.name);
    series.style = NumberedStyle(number);
    auto place = std::find(tasks_.begin(), tasks_.end(), set.task);
    if (place == tasks_.end()) {
      place = tasks_.insert(tasks_.end(), set.task);
      Panel& panel = panels_.emplace_back();
      panel.title = TaskTitle(TaskOf(set));
      if (auto guess = GuessReference(TaskOf(set))) panel.references.push_back(*std::move(guess));
    }
    panels_[static_cast<size_t>(place - tasks_.begin())].series.push_back(std::move(series));
  }

  void MoveTo(Figure& figure) {
    figure.columns = PanelColumns(panels_.size());
    figure.panels = std::move(panels_);
    if (!chose_rates_) return;
    absl::StrAppend(&figure.caption, figure.caption.empty() ? "" : " ",
                    "Each encoding has the learning rate with the highest ", kAccuracy, ".");
  }

 private:
  const std::vector<const TrialSet*> sets_;
  const bool chose_rates_;
  std::vector<std::string> names_;
  std::vector<std::string> tasks_;
  std::vector<Panel> panels_;
};

// Room at both ends, so that no point lies on the frame.
void WidenX(Figure& figure) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      for (const SeriesPoint& point : series.points) {
        low = std::min(low, point.x);
        high = std::max(high, point.x);
      }
    }
  }
  if (!(low < high)) return;
  const double margin = 0.05 * (high - low);
  figure.x.range = {low - margin, high + margin};
}

}  // namespace

Figure NoiseFigure(const std::vector<NoiseCurve>& curves,
                   const std::vector<PlotExperiment>& experiments) {
  Figure figure{.kind = "noise",
                .title = absl::StrCat("Accuracy under noise: ", ExperimentNames(experiments)),
                .x = {.label = "standard deviation of the noise on the embeddings of tokens"},
                .y = AccuracyAxis("accuracy, mean over all lengths")};
  std::vector<const TrialSet*> sets;
  sets.reserve(curves.size());
  for (const NoiseCurve& curve : curves) sets.push_back(curve.set);
  Panels panels(sets, Accuracies(experiments));
  size_t most = 1;
  for (const NoiseCurve& curve : curves) {
    if (!panels.Shows(*curve.set)) continue;
    Series series;
    for (const auto& [deviation, accuracies] : curve.accuracies) {
      const auto [low, high] = std::minmax_element(accuracies.begin(), accuracies.end());
      series.points.push_back({deviation, statistics::Mean(accuracies), *low, *high});
      most = std::max(most, accuracies.size());
    }
    panels.Add(*curve.set, std::move(series));
  }
  if (most > 1) {
    figure.caption = absl::StrCat("Lines: the mean of up to ", most, " models.");
    figure.band_caption = "Bands: from the lowest to the highest.";
  }
  panels.MoveTo(figure);
  return figure;
}

Figure AttentionSimilarityFigure(const AttentionComparison& comparison,
                                 const std::string& reference,
                                 const std::vector<PlotExperiment>& experiments) {
  Figure figure{
      .kind = "attention_similarity",
      .title = absl::StrCat("Attention beside ", reference, ": ", ExperimentNames(experiments)),
      .x = {.label = absl::StrCat("cosine of attention maps to those of ", reference)},
      .y = AccuracyAxis(kAccuracy)};
  const std::map<std::string, double> accuracies = Accuracies(experiments);
  std::vector<const TrialSet*> sets;
  for (const AttentionSimilarity& row : comparison.rows) {
    if (row.set->encoding != reference) sets.push_back(row.set);
  }
  Panels panels(sets, accuracies);
  for (const AttentionSimilarity& row : comparison.rows) {
    if (!panels.Shows(*row.set)) continue;
    Series series{.kind = Series::Kind::kScatter};
    for (const auto& [trial, cosine] : row.means) {
      const auto accuracy = accuracies.find(trial->name());
      if (accuracy == accuracies.end()) continue;
      series.points.push_back({cosine, accuracy->second, accuracy->second, accuracy->second});
    }
    if (!series.points.empty()) panels.Add(*row.set, std::move(series));
  }
  figure.caption = absl::StrCat("Points: models; the mean over those of ", reference, ", ",
                                Counted(comparison.sequences, "sequence"), " and all layers.");
  panels.MoveTo(figure);
  WidenX(figure);
  return figure;
}

absl::StatusOr<Figure> GroundTruthFigure(const std::vector<GroundTruthAttention>& rows,
                                         const std::vector<PlotExperiment>& experiments) {
  if (absl::Status status = CheckMapRows(rows.size()); !status.ok()) return status;
  Figure figure{
      .kind = "attention_ground_truth",
      .title = absl::StrCat("Attention beside the ground truth: ", ExperimentNames(experiments)),
      .x = {.label = "cell attended to"},
      .y = {.label = "cell asked for"},
      .columns = static_cast<int>(rows.front().layers.size()) + 1,
      .map_maximum = 0,
      .map_label = "attention"};
  std::vector<const TrialSet*> sets;
  sets.reserve(rows.size());
  for (const GroundTruthAttention& row : rows) sets.push_back(row.set);
  bool tasks = false;
  int64_t most_models = 0;
  for (const GroundTruthAttention& row : rows) {
    tasks |= row.set->task != rows.front().set->task;
    most_models = std::max(most_models, row.models);
    if (row.layers.size() != rows.front().layers.size()) {
      return absl::InvalidArgumentError(
          "the networks have different numbers of layers; choose one with --network");
    }
  }
  const auto add = [&figure](const GroundTruthAttention& row, const std::vector<double>& values,
                             std::string title) {
    Panel& panel = figure.panels.emplace_back();
    panel.title = std::move(title);
    panel.map = HeatMap{.size = static_cast<int>(row.cells),
                        .values = std::vector<float>(values.begin(), values.end()),
                        .tokens = static_cast<int>(row.cells),
                        .first_output = static_cast<int>(row.cells)};
    for (const float value : panel.map->values) {
      figure.map_maximum = std::max<double>(figure.map_maximum, value);
    }
  };
  for (const GroundTruthAttention& row : rows) {
    add(row, row.truth, absl::StrCat("ground truth (even: ", FormatPercent(row.all.even), " %)"));
    for (size_t layer = 0; layer < row.layers.size(); ++layer) {
      add(row, row.layers[layer],
          absl::StrCat("layer ", layer + 1, ": ",
                       FormatPercent(statistics::Mean(row.all.by_layer[layer])), " %"));
    }
    figure.row_titles.push_back(absl::StrCat(
        tasks ? absl::StrCat(TaskTitle(TaskOf(*row.set)), ": ") : "", NameOf(*row.set, sets)));
  }
  figure.caption = absl::StrCat(
      "Of the puzzles that ask for a cell, numbered row by row: what its token attends to, the "
      "mean over ",
      Counted(rows.front().all.puzzles, "puzzle"), most_models > 1 ? " and the models" : "",
      ". Ground truth: the other cells of the rows and columns that settle the answer. Per cent: "
      "attention that goes there; even: attending to all cells alike.");
  return figure;
}

Figure EncodingDistanceFigure(const EncodingDistances& distances, const std::string& reference,
                              const std::vector<PlotExperiment>& experiments) {
  Figure figure{.kind = "encoding_distance",
                .title = absl::StrCat("Learned tables beside ", reference, ": ",
                                      ExperimentNames(experiments)),
                .x = {.label = absl::StrCat("orthogonal Procrustes distance of the first table to ",
                                            reference)},
                .y = AccuracyAxis(kAccuracy)};
  const std::map<std::string, double> accuracies = Accuracies(experiments);
  std::vector<const TrialSet*> sets;
  for (const EncodingDistance& model : distances.models) sets.push_back(model.set);
  Panels panels(sets, accuracies);
  for (size_t i = 0; i < distances.models.size();) {
    const TrialSet& set = *distances.models[i].set;
    Series series{.kind = Series::Kind::kScatter};
    for (; i < distances.models.size() && distances.models[i].set == &set; ++i) {
      const auto accuracy = accuracies.find(distances.models[i].trial->name());
      if (accuracy == accuracies.end()) continue;
      series.points.push_back({distances.models[i].blocks.front(), accuracy->second,
                               accuracy->second, accuracy->second});
    }
    if (!series.points.empty() && panels.Shows(set)) panels.Add(set, std::move(series));
  }
  figure.caption = "Points: models.";
  panels.MoveTo(figure);
  WidenX(figure);
  return figure;
}

}  // namespace lengthwise::client
