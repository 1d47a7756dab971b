// Metric families of numbers that are read at a scrape.
#ifndef LENGTHWISE_MONITORING_FAMILIES_H_
#define LENGTHWISE_MONITORING_FAMILIES_H_

#include <string>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"
#include "prometheus/metric_type.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::monitoring {

using Labels = std::vector<std::pair<std::string, std::string>>;

// A family without a series: its name, type and help are exported all the same.
prometheus::MetricFamily MakeFamily(const char* name, prometheus::MetricType type,
                                    const char* help);

// To a counter's or a gauge's.
void AddValue(const Labels& labels, double value, prometheus::MetricFamily& family);

// To a histogram's. `histogram` is sound (histogram.h).
void AddHistogram(const Labels& labels, const v1::Histogram& histogram,
                  prometheus::MetricFamily& family);

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_FAMILIES_H_
