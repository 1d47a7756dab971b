#include "server/metrics/statistics_metrics.h"

#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "monitoring/families.h"
#include "monitoring/worker_metrics.h"
#include "server/metrics/trial_metrics.h"

namespace lengthwise::server {
namespace {

using monitoring::AddHistogram;
using monitoring::AddValue;
using monitoring::MakeFamily;
using prometheus::MetricFamily;
using prometheus::MetricType;

// A family with a single series.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  double (*value)(const Statistics&);
};

constexpr Metric kMetrics[] = {
    {"lengthwise_queue_oldest_seconds", MetricType::Gauge,
     "Time that the oldest queued trial has waited, in seconds; 0 when none is queued.",
     [](const Statistics& s) { return s.oldest_queued_seconds; }},
    {"lengthwise_leases", MetricType::Gauge, "Packs leased to workers.",
     [](const Statistics& s) { return static_cast<double>(s.leases); }},
    {"lengthwise_lease_expiries_total", MetricType::Counter,
     "Leases that expired without a heartbeat: workers died or lost their connection.",
     [](const Statistics& s) { return static_cast<double>(s.lease_expiries); }},
    {"lengthwise_workers_alive", MetricType::Gauge,
     "Workers with a heartbeat within the last lease duration.",
     [](const Statistics& s) { return static_cast<double>(s.workers.size()); }},
    {"lengthwise_events_stored_total", MetricType::Counter, "Events committed to the store.",
     [](const Statistics& s) { return static_cast<double>(s.events_stored); }},
    {"lengthwise_points_stored_total", MetricType::Counter,
     "Loss curve points committed to the store.",
     [](const Statistics& s) { return static_cast<double>(s.points_stored); }},
    {"lengthwise_commit_failures_total", MetricType::Counter,
     "Transactions that the store failed to commit; their commands failed with UNAVAILABLE.",
     [](const Statistics& s) { return static_cast<double>(s.commit_failures); }},
    {"lengthwise_example_files_stored_total", MetricType::Counter,
     "Files of examples uploaded, validated and stored.",
     [](const Statistics& s) { return static_cast<double>(s.example_files_stored); }},
    {"lengthwise_example_bytes_stored_total", MetricType::Counter,
     "Bytes of stored files of examples.",
     [](const Statistics& s) { return static_cast<double>(s.example_bytes_stored); }},
    {"lengthwise_database_bytes", MetricType::Gauge, "Size of the database file, in bytes.",
     [](const Statistics& s) { return static_cast<double>(s.database_bytes); }},
    {"lengthwise_disk_free_bytes", MetricType::Gauge,
     "Free space of the data directory's file system, in bytes.",
     [](const Statistics& s) { return static_cast<double>(s.disk_free_bytes); }},
    {"lengthwise_disk_bytes", MetricType::Gauge,
     "Size of the data directory's file system, in bytes.",
     [](const Statistics& s) { return static_cast<double>(s.disk_size_bytes); }},
};

struct Distribution {
  const char* name;
  const char* help;
  v1::Histogram Statistics::*value;
};

constexpr Distribution kDistributions[] = {
    {"lengthwise_lease_trials", "Trials per leased pack.", &Statistics::lease_trials},
    {"lengthwise_commit_seconds", "Duration of store transactions, including disk sync.",
     &Statistics::commit_seconds},
    {"lengthwise_commit_commands", "Commands per store transaction.", &Statistics::commit_commands},
    {"lengthwise_commit_events", "Events per store transaction.", &Statistics::commit_events},
};

MetricFamily Trials(const v1::TrialCounts& trials) {
  MetricFamily family = MakeFamily("lengthwise_trials", MetricType::Gauge,
                                   "Trials by state, over all existing experiments.");
  AddTrialCounts({}, trials, family);
  return family;
}

MetricFamily WantedWorkers(const std::map<int32_t, int64_t>& wanted) {
  MetricFamily family =
      MakeFamily("lengthwise_wanted_workers", MetricType::Gauge,
                 "Runnable packs without a lease, one per worker to start, by the worker's maximum "
                 "pack size.");
  for (const auto& [pack_size, workers] : wanted) {
    AddValue({{"pack_size", std::to_string(pack_size)}}, static_cast<double>(workers), family);
  }
  return family;
}

MetricFamily Counts(const char* name, const char* help, const char* label,
                    const std::map<std::string, int64_t>& counts) {
  MetricFamily family = MakeFamily(name, MetricType::Counter, help);
  for (const auto& [value, count] : counts) {
    AddValue({{label, value}}, static_cast<double>(count), family);
  }
  return family;
}

void Append(std::vector<MetricFamily> more, std::vector<MetricFamily>& families) {
  families.insert(families.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<MetricFamily> ToMetrics(const Statistics& statistics) {
  const DecisionCounts& decided = statistics.decided;
  std::vector<MetricFamily> families = {
      Trials(statistics.trials), WantedWorkers(statistics.wanted_workers),
      Counts("lengthwise_decisions_total", "Scheduler decisions, by kind.", "decision",
             decided.decisions),
      Counts("lengthwise_trial_retries_total", "Requeued trials, by reason.", "reason",
             decided.retries),
      Counts("lengthwise_trial_failures_total", "Trials that failed permanently, by reason.",
             "reason", decided.failures)};
  for (const Metric& metric : kMetrics) {
    AddValue({}, metric.value(statistics),
             families.emplace_back(MakeFamily(metric.name, metric.type, metric.help)));
  }
  for (const Distribution& distribution : kDistributions) {
    AddHistogram({}, statistics.*distribution.value,
                 families.emplace_back(
                     MakeFamily(distribution.name, MetricType::Histogram, distribution.help)));
  }
  Append(TrialMetrics(statistics), families);
  Append(monitoring::WorkerMetrics(statistics.workers), families);
  return families;
}

std::vector<MetricFamily> StatisticsMetrics::Collect() const { return ToMetrics(statistics_()); }

}  // namespace lengthwise::server
