#include "client/plotting/length_sweep.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"

namespace lengthwise::client {
namespace {

std::optional<double> NumberOf(const v1::Component& component, const std::string& parameter) {
  const auto found = component.parameters().find(parameter);
  if (found == component.parameters().end() ||
      found->second.kind_case() != google::protobuf::Value::kNumberValue) {
    return std::nullopt;
  }
  return found->second.number_value();
}

// Whether the parameter means anything to the encoding: positions that are not drawn have no
// number to be drawn from.
bool Uses(const v1::Component& encoding, const std::string& parameter) {
  if (parameter != "max_position") return true;
  const auto randomized = encoding.parameters().find("randomized");
  return randomized == encoding.parameters().end() || randomized->second.bool_value() ||
         encoding.name() == "learned";
}

// The parameters whose values differ between encodings, with how many values they have.
std::map<std::string, size_t> Differing(const std::vector<TrialGroup>& groups) {
  std::map<std::string, std::set<double>> values;
  for (const TrialGroup& group : groups) {
    for (const auto& [name, value] : group.encoding->parameters()) {
      const std::optional<double> number = NumberOf(*group.encoding, name);
      if (number.has_value() && Uses(*group.encoding, name)) values[name].insert(*number);
    }
  }
  std::map<std::string, size_t> differing;
  for (const auto& [name, set] : values) {
    if (set.size() > 1) differing[name] = set.size();
  }
  return differing;
}

}  // namespace

absl::StatusOr<Figure> LengthSweepFigure(const std::vector<PlotExperiment>& experiments,
                                         const std::string& asked_parameter) {
  const std::vector<TrialGroup> groups = GroupTrials(experiments);
  const std::map<std::string, size_t> differing = Differing(groups);
  std::string parameter = asked_parameter;
  if (parameter.empty() && !differing.empty()) {
    parameter = differing.count("max_position") > 0 ? "max_position" : differing.begin()->first;
  }
  if (differing.count(parameter) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the encodings of ", ExperimentNames(experiments), " do not differ in ",
        parameter.empty() ? "a number" : parameter,
        "; a sweep has one encoding several times, as in `encodings: [{name: relative, "
        "randomized: true, max_position: 1024}, {name: relative, randomized: true, max_position: "
        "2048}]`"));
  }
  // A line: an experiment's task and kind of encoding.
  struct Line {
    const TrialGroup* first = nullptr;
    std::map<double, double> highest;
    std::vector<SeriesPoint> trials;
  };
  std::vector<Line> lines;
  std::set<std::string> kinds;
  std::set<double> values;
  const auto kind_of = [](const TrialGroup& group) {
    const auto randomized = group.encoding->parameters().find("randomized");
    return absl::StrCat(
        randomized != group.encoding->parameters().end() && randomized->second.bool_value()
            ? "randomized_"
            : "",
        group.encoding->name());
  };
  for (const TrialGroup& group : groups) {
    const std::optional<double> value = NumberOf(*group.encoding, parameter);
    if (!value.has_value() || !Uses(*group.encoding, parameter)) continue;
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& other) {
      return other.first->experiment == group.experiment &&
             kind_of(*other.first) == kind_of(group) &&
             Label(*other.first->task) == Label(*group.task);
    });
    if (line == lines.end()) line = lines.insert(lines.end(), {.first = &group});
    const auto finals = FinalEvaluations(*group.experiment);
    for (const SeedGroup& seeds : group.rates) {
      for (const v1::Trial* trial : seeds.trials) {
        const auto found = finals.find(trial->name());
        if (found == finals.end()) continue;
        const double accuracy = UnseenAccuracy(*trial, *found->second);
        if (std::isnan(accuracy)) continue;
        values.insert(*value);
        kinds.insert(kind_of(group));
        line->trials.push_back({*value, accuracy, accuracy, accuracy});
        const auto [highest, is_new] = line->highest.emplace(*value, accuracy);
        if (!is_new) highest->second = std::max(highest->second, accuracy);
      }
    }
  }
  Figure figure{
      .kind = "length_sweep",
      .title = absl::StrCat("Accuracy by ", parameter, ": ", ExperimentNames(experiments)),
      .x = {.label = parameter == "max_position"
                         ? "number of positions drawn from, L (max_position)"
                         : parameter},
      .y = AccuracyAxis("token accuracy on lengths not seen")};
  for (const Line& line : lines) {
    figure.y.label = absl::StrCat(AccuracyTitle(*line.first->task), " on lengths not seen");
  }
  Panel panel;
  std::map<double, std::string> guesses;
  std::vector<Series> highest;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.trials.empty()) continue;
    const auto number = static_cast<int>(i);
    const SeriesStyle style{.color = number, .marker = number};
    std::string name = TaskTitle(*line.first->task);
    if (kinds.size() > 1) absl::StrAppend(&name, ", ", kind_of(*line.first));
    if (experiments.size() > 1) name = absl::StrCat(line.first->experiment->name, ": ", name);
    if (line.trials.size() > line.highest.size()) {
      panel.series.push_back({.kind = Series::Kind::kScatter,
                              .style = {number, number, /*dashed=*/true},
                              .faint = true,
                              .points = line.trials});
    }
    Series series{.name = name, .style = style};
    for (const auto& [value, accuracy] : line.highest) {
      series.points.push_back({value, accuracy, accuracy, accuracy});
    }
    highest.push_back(std::move(series));
    if (const auto guess = GuessReference(*line.first->task)) guesses[guess->y] = guess->label;
  }
  if (highest.empty()) return NoFinalEvaluation(experiments);
  panel.series.insert(panel.series.end(), highest.begin(), highest.end());
  for (const auto& [y, label] : guesses) panel.references.push_back({y, label});
  figure.panels.push_back(std::move(panel));
  const double lowest = *values.begin();
  const double largest = *values.rbegin();
  if (lowest > 0 && largest > lowest) {
    figure.x.scale = Axis::Scale::kLog2;
    figure.x.range = {lowest / 1.1, largest * 1.1};
  }
  figure.caption = "Lines: the highest of all seeds and learning rates. Points: every trial. " +
                   MissingTrials(experiments);
  return figure;
}

}  // namespace lengthwise::client
