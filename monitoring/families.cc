#include "monitoring/families.h"

#include <cstdint>
#include <limits>

namespace lengthwise::monitoring {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

ClientMetric& AddMetric(const Labels& labels, MetricFamily& family) {
  ClientMetric& metric = family.metric.emplace_back();
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

}  // namespace

MetricFamily MakeFamily(const char* name, MetricType type, const char* help) {
  MetricFamily family;
  family.name = name;
  family.type = type;
  family.help = help;
  return family;
}

void AddValue(const Labels& labels, double value, MetricFamily& family) {
  ClientMetric& metric = AddMetric(labels, family);
  (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
}

void AddHistogram(const Labels& labels, const v1::Histogram& histogram, MetricFamily& family) {
  ClientMetric::Histogram& exported = AddMetric(labels, family).histogram;
  uint64_t count = 0;
  for (int i = 0; i < histogram.counts_size(); ++i) {
    count += static_cast<uint64_t>(histogram.counts(i));
    exported.bucket.push_back({.cumulative_count = count,
                               .upper_bound = i < histogram.upper_bounds_size()
                                                  ? histogram.upper_bounds(i)
                                                  : std::numeric_limits<double>::infinity()});
  }
  exported.sample_count = count;
  exported.sample_sum = histogram.sum();
}

}  // namespace lengthwise::monitoring
