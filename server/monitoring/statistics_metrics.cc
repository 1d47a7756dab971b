#include "server/monitoring/statistics_metrics.h"

#include <utility>

namespace lengthwise::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Statistics = Coordinator::Statistics;

// A family of one number.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  double (*value)(const Statistics&);
};

constexpr Metric kMetrics[] = {
    {"lengthwise_queue_oldest_seconds", MetricType::Gauge,
     "Age of the trial that has waited longest to be leased; 0 when none waits. Rises steadily "
     "when no live worker can "
     "take what is queued.",
     [](const Statistics& s) { return s.oldest_queued_seconds; }},
    {"lengthwise_leases", MetricType::Gauge, "Packs that are leased to workers.",
     [](const Statistics& s) { return static_cast<double>(s.leases); }},
    {"lengthwise_lease_expiries_total", MetricType::Counter,
     "Leases that ended because no heartbeat came: workers that died or lost their connection.",
     [](const Statistics& s) { return static_cast<double>(s.lease_expiries); }},
    {"lengthwise_workers_alive", MetricType::Gauge,
     "Registered workers whose last heartbeat is younger than a lease's duration.",
     [](const Statistics& s) { return static_cast<double>(s.workers_alive); }},
    {"lengthwise_worker_steps_per_second", MetricType::Gauge,
     "Training steps of packs per second, summed over live workers.",
     [](const Statistics& s) { return s.steps_per_second; }},
    {"lengthwise_worker_model_steps_per_second", MetricType::Gauge,
     "Training steps of models per second (a pack's steps times its size), summed over live "
     "workers.",
     [](const Statistics& s) { return s.model_steps_per_second; }},
    {"lengthwise_events_stored_total", MetricType::Counter, "Events that were made durable.",
     [](const Statistics& s) { return static_cast<double>(s.events_stored); }},
    {"lengthwise_points_stored_total", MetricType::Counter,
     "Points of loss curves that were made durable.",
     [](const Statistics& s) { return static_cast<double>(s.points_stored); }},
    {"lengthwise_commits_total", MetricType::Counter,
     "Transactions of the store. Events per commit is how well commits are grouped.",
     [](const Statistics& s) { return static_cast<double>(s.commits); }},
    {"lengthwise_database_bytes", MetricType::Gauge, "Size of the database file.",
     [](const Statistics& s) { return static_cast<double>(s.database_bytes); }},
};

MetricFamily Family(const char* name, MetricType type, const char* help) {
  MetricFamily family;
  family.name = name;
  family.type = type;
  family.help = help;
  return family;
}

void SetValue(MetricType type, double value, ClientMetric& metric) {
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
}

MetricFamily Trials(const v1::TrialCounts& trials) {
  MetricFamily family = Family("lengthwise_trials", MetricType::Gauge,
                               "Trials by state, over all experiments that were not deleted.");
  const std::pair<const char*, int32_t> states[] = {{"queued", trials.queued()},
                                                    {"running", trials.running()},
                                                    {"succeeded", trials.succeeded()},
                                                    {"failed", trials.failed()},
                                                    {"cancelled", trials.cancelled()}};
  for (const auto& [state, count] : states) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = {{"state", state}};
    metric.gauge.value = count;
  }
  return family;
}

// A summary without quantiles: rate(sum) / rate(count) is the mean duration of late commits.
MetricFamily Commits(const Statistics& statistics) {
  MetricFamily family = Family("lengthwise_commit_seconds", MetricType::Summary,
                               "How long the store's transactions took, including the disk.");
  ClientMetric& metric = family.metric.emplace_back();
  metric.summary.sample_count = statistics.commits;
  metric.summary.sample_sum = statistics.commit_seconds;
  return family;
}

}  // namespace

std::vector<MetricFamily> ToMetrics(const Statistics& statistics) {
  std::vector<MetricFamily> families = {Trials(statistics.trials), Commits(statistics)};
  for (const Metric& metric : kMetrics) {
    MetricFamily& family = families.emplace_back(Family(metric.name, metric.type, metric.help));
    SetValue(metric.type, metric.value(statistics), family.metric.emplace_back());
  }
  return families;
}

std::vector<MetricFamily> StatisticsMetrics::Collect() const {
  return ToMetrics(coordinator_.GetStatistics());
}

}  // namespace lengthwise::server
