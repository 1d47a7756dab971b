#include "client/plotting/evaluation_metrics.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/plotting/display_names.h"

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

}  // namespace

std::string MainMetric(const v1::Component& task) {
  return ComparedByLoss(task) ? kLoss : kAccuracy;
}

bool IsAccuracy(absl::string_view metric) { return absl::EndsWith(metric, kAccuracy); }

std::string AxisTitleOf(const v1::Component& task, const std::string& metric) {
  if (metric == kAccuracy) return AccuracyTitle(task);
  if (metric == kLoss) return LossTitle(task);
  return MetricTitle(metric);
}

std::map<double, double> ByLength(const v1::LengthAccuracies& measured, const std::string& metric) {
  std::map<double, double> curve;
  const auto* const values = ValuesOf(measured, metric);
  if (values == nullptr) return curve;
  for (int i = 0; i < std::min(measured.lengths_size(), values->size()); ++i) {
    curve[measured.lengths(i)] = values->Get(i);
  }
  return curve;
}

absl::Status CheckMetric(const std::vector<PlotExperiment>& experiments,
                         const std::string& metric) {
  std::vector<std::string> names = {kAccuracy, kLoss};
  bool evaluated = false;
  for (const PlotExperiment& experiment : experiments) {
    for (const auto& evaluation : experiment.accuracies.evaluations()) {
      evaluated = true;
      for (const v1::LengthAccuracies::Metric& other : evaluation.accuracies().metrics()) {
        if (std::find(names.begin(), names.end(), other.name()) == names.end()) {
          names.push_back(other.name());
        }
      }
    }
  }
  if (!evaluated || std::find(names.begin(), names.end(), metric) != names.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--metric: no evaluation of ",
                                                 ExperimentNames(experiments), " has \"", metric,
                                                 "\"; there are ", absl::StrJoin(names, ", ")));
}

}  // namespace lengthwise::client
