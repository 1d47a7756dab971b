#include "monitoring/families.h"

#include <cstdint>
#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "prometheus/metric_type.h"

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

// The rows "| `name` | type | labels | meaning |" of the page, by name.
std::map<std::string, MetricFamily> ReadPage() {
  std::map<std::string, MetricFamily> families;
  for (absl::string_view line : absl::StrSplit(kMetricsPage, '\n')) {
    if (!absl::ConsumePrefix(&line, "| `")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    const std::string name(absl::StripSuffix(cells[0], "` "));
    const std::string help = cells[3].substr(0, cells[3].find(". "));
    families[name] = {.name = name,
                      .help = std::string(absl::StripAsciiWhitespace(help)),
                      .type = cells[1] == " counter "     ? MetricType::Counter
                              : cells[1] == " histogram " ? MetricType::Histogram
                                                          : MetricType::Gauge};
  }
  return families;
}

}  // namespace

MetricFamily MakeFamily(const std::string& name) {
  static const auto& families = *new std::map<std::string, MetricFamily>(ReadPage());
  return families.at(name);
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
