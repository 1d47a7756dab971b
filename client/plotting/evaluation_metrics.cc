#include "client/plotting/evaluation_metrics.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/plotting/display_names.h"
#include "client/plotting/task_panels.h"
#include "client/rendering/metrics.h"

namespace lengthwise::client {
namespace {

constexpr char kAccuracy[] = "accuracy";
constexpr char kLoss[] = "loss";

const google::protobuf::RepeatedField<double>* ValuesOf(const v1::LengthAccuracies& measured,
                                                        const std::string& metric) {
  if (metric == kAccuracy) return &measured.accuracies();
  if (metric == kLoss) return &measured.losses();
  for (const v1::LengthAccuracies::Metric& other : measured.metrics()) {
    if (other.name() == metric) return &other.values();
  }
  return nullptr;
}

// How a figure's axis calls it.
std::string AxisTitleOf(const v1::Component& task, const std::string& metric) {
  if (metric == kAccuracy) return AccuracyTitle(task);
  if (metric == kLoss) return LossTitle(task);
  return MetricTitle(metric);
}

// OK where there are no evaluations at all.
absl::Status CheckMetric(const std::vector<PlotExperiment>& experiments,
                         const std::string& metric) {
  std::vector<std::string> names = {kAccuracy, kLoss};
  bool evaluated = false;
  std::set<std::string> others;
  for (const PlotExperiment& experiment : experiments) {
    evaluated |= experiment.accuracies.evaluations_size() > 0;
    others.merge(MetricNames(experiment.accuracies));
  }
  names.insert(names.end(), others.begin(), others.end());
  if (!evaluated || std::find(names.begin(), names.end(), metric) != names.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--metric: no evaluation of ",
                                                 ExperimentNames(experiments), " has \"", metric,
                                                 "\"; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace

std::string MainMetric(const v1::Component& task) {
  return ComparedByLoss(task) ? kLoss : kAccuracy;
}

bool IsAccuracy(absl::string_view metric) { return absl::EndsWith(metric, kAccuracy); }

std::map<double, double> ByLength(const v1::LengthAccuracies& measured, const std::string& metric) {
  std::map<double, double> curve;
  const auto* const values = ValuesOf(measured, metric);
  if (values == nullptr) return curve;
  for (int i = 0; i < std::min(measured.lengths_size(), values->size()); ++i) {
    curve[measured.lengths(i)] = values->Get(i);
  }
  return curve;
}

absl::StatusOr<ShownMetric> ChooseMetric(const std::vector<PlotExperiment>& experiments,
                                         const std::vector<const v1::Component*>& tasks,
                                         const std::string& metric) {
  if (!metric.empty()) {
    if (absl::Status status = CheckMetric(experiments, metric); !status.ok()) return status;
  }
  ShownMetric shown{.name = metric, .axis = AccuracyAxis("token accuracy")};
  for (const v1::Component* task : tasks) {
    if (ComparedByLoss(*task) != ComparedByLoss(*tasks[0])) {
      return absl::InvalidArgumentError(
          "one picture shows accuracies or errors, and these experiments have both; plot them one "
          "by one");
    }
    shown.is_median = ComparedByLoss(*task);
    if (metric.empty()) shown.name = MainMetric(*task);
    const std::string title = AxisTitleOf(*task, shown.name);
    shown.axis = IsAccuracy(shown.name) ? AccuracyAxis(title) : Axis{.label = title};
  }
  return shown;
}

}  // namespace lengthwise::client
