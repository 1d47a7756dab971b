#include "client/rendering/metrics.h"

namespace lengthwise::client {

std::set<std::string> MetricNames(const v1::QueryLengthAccuraciesResponse& evaluations) {
  std::set<std::string> names;
  for (const auto& evaluation : evaluations.evaluations()) {
    for (const auto& metric : evaluation.accuracies().metrics()) names.insert(metric.name());
  }
  return names;
}

Value MetricValue(const v1::LengthAccuracies& measured, const std::string& name, int index) {
  for (const v1::LengthAccuracies::Metric& metric : measured.metrics()) {
    if (metric.name() == name && index < metric.values_size()) return metric.values(index);
  }
  return {};
}

}  // namespace lengthwise::client
