#include "server/metrics/statistics_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <variant>

namespace lengthwise::server {
namespace {

using monitoring::AddHistogram;
using monitoring::AddValue;
using monitoring::Families;
using monitoring::Labels;
using monitoring::MakeFamily;
using prometheus::MetricFamily;
using prometheus::MetricType;

// A family with a single series.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  std::variant<int64_t Statistics::*, double Statistics::*, bool Statistics::*,
               size_t (*)(const Statistics&)>
      value;
};

constexpr Metric kMetrics[] = {
    {"lengthwise_queue_oldest_seconds", MetricType::Gauge,
     "Time that the oldest queued trial has waited, in seconds; 0 when none is queued.",
     &Statistics::oldest_queued_seconds},
    {"lengthwise_leases", MetricType::Gauge, "Packs leased to workers.", &Statistics::leases},
    {"lengthwise_lease_expiries_total", MetricType::Counter,
     "Leases that expired without a heartbeat: workers died or lost their connection.",
     &Statistics::lease_expiries},
    {"lengthwise_workers_alive", MetricType::Gauge,
     "Workers with a heartbeat within the last lease duration.",
     [](const Statistics& s) { return s.workers.size(); }},
    {"lengthwise_workers_lost_total", MetricType::Counter,
     "Workers that fell silent for a lease duration without having stopped.",
     &Statistics::lost_workers},
    {"lengthwise_workers_drained", MetricType::Gauge,
     "Live workers that get no new leases, by `lengthwise workers drain`.",
     &Statistics::drained_workers},
    {"lengthwise_queue_paused", MetricType::Gauge, "1 while the queue is paused; else 0.",
     &Statistics::queue_paused},
    {"lengthwise_workers_unfit", MetricType::Gauge,
     "Live workers whose machine cannot run some of the trials.", &Statistics::unfit_workers},
    {"lengthwise_events_stored_total", MetricType::Counter, "Events committed to the store.",
     &Statistics::events_stored},
    {"lengthwise_points_stored_total", MetricType::Counter,
     "Loss curve points committed to the store.", &Statistics::points_stored},
    {"lengthwise_commit_failures_total", MetricType::Counter,
     "Transactions that the store failed to commit; their commands failed with UNAVAILABLE.",
     &Statistics::commit_failures},
    {"lengthwise_example_files_stored_total", MetricType::Counter,
     "Files of examples uploaded, validated and stored.", &Statistics::example_files_stored},
    {"lengthwise_example_bytes_stored_total", MetricType::Counter,
     "Bytes of stored files of examples.", &Statistics::example_bytes_stored},
    {"lengthwise_database_bytes", MetricType::Gauge, "Size of the database file, in bytes.",
     &Statistics::database_bytes},
    {"lengthwise_last_backup_timestamp_seconds", MetricType::Gauge,
     "Time of the last complete backup, in seconds since 1970; 0 if there is none.",
     &Statistics::last_backup_seconds},
    {"lengthwise_last_backup_failed", MetricType::Gauge,
     "1 if the last attempt to make a backup failed; else 0.", &Statistics::last_backup_failed},
    {"lengthwise_disk_free_bytes", MetricType::Gauge,
     "Free space of the data directory's file system, in bytes; of that of --artifacts if a "
     "smaller share of it is free.",
     &Statistics::disk_free_bytes},
    {"lengthwise_disk_bytes", MetricType::Gauge,
     "Size of the file system of lengthwise_disk_free_bytes, in bytes.",
     &Statistics::disk_size_bytes},
    {"lengthwise_disk_full", MetricType::Gauge,
     "1 while the disk has room for deletions only, and new data is refused; else 0.",
     &Statistics::disk_full},
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

// Adds one series per state to `family`: `labels`, followed by the label `state`.
void AddTrialCounts(const Labels& labels, const v1::TrialCounts& counts, MetricFamily& family) {
  const std::pair<const char*, int32_t> states[] = {{"queued", counts.queued()},
                                                    {"running", counts.running()},
                                                    {"succeeded", counts.succeeded()},
                                                    {"failed", counts.failed()},
                                                    {"cancelled", counts.cancelled()}};
  for (const auto& [state, count] : states) {
    Labels with_state = labels;
    with_state.emplace_back("state", state);
    AddValue(with_state, count, family);
  }
}

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

// Owners with series of their own in one family. The others are summed, so that scrapes stay small.
constexpr size_t kMostOwners = 50;

MetricFamily ByOwner(const char* name, const char* help, const std::vector<v1::OwnerUsage>& owners,
                     double (*value)(const v1::OwnerUsage&)) {
  std::vector<std::pair<double, std::string>> largest;
  for (const v1::OwnerUsage& owner : owners) largest.emplace_back(value(owner), owner.owner());
  std::sort(largest.rbegin(), largest.rend());
  // A sum, because an owner may be named "other".
  std::map<std::string, double> series;
  for (size_t i = 0; i < largest.size(); ++i) {
    series[i < kMostOwners ? largest[i].second : "other"] += largest[i].first;
  }
  MetricFamily family = MakeFamily(name, MetricType::Gauge, help);
  for (const auto& [owner, sum] : series) AddValue({{"owner", owner}}, sum, family);
  return family;
}

Families OwnerMetrics(const std::vector<v1::OwnerUsage>& owners) {
  using Owner = v1::OwnerUsage;
  return {ByOwner("lengthwise_owner_disk_bytes", "Disk use of an owner's experiments, in bytes.",
                  owners, [](const Owner& owner) { return static_cast<double>(owner.bytes()); }),
          ByOwner("lengthwise_owner_trials", "Trials of an owner that were started.", owners,
                  [](const Owner& owner) { return static_cast<double>(owner.trials()); }),
          ByOwner("lengthwise_owner_steps", "Training steps of an owner's trials.", owners,
                  [](const Owner& owner) { return static_cast<double>(owner.steps()); }),
          ByOwner("lengthwise_owner_worker_seconds", "Time that workers gave an owner's trials.",
                  owners, [](const Owner& owner) { return owner.worker_seconds(); })};
}

void Append(Families more, Families& families) {
  families.insert(families.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

// Returns the completed share of `phase`, 0 to 1: 1 for a phase that the trial has left behind, 0
// for one that it has not reached.
double Done(const v1::TrialProgress& progress, v1::TrialProgress::Phase phase) {
  if (progress.phase() != phase) return progress.phase() > phase ? 1 : 0;
  if (progress.total() <= 0) return 0;
  return std::min(1.0,
                  static_cast<double>(progress.done()) / static_cast<double>(progress.total()));
}

// Returns the families with the labels `experiment` and `trial`, including those without a series.
// Covers only statistics.running_trials, which is bounded, so that scrapes stay small.
Families TrialMetrics(const Statistics& statistics) {
  MetricFamily experiments =
      MakeFamily("lengthwise_experiment_trials", MetricType::Gauge,
                 "Trials by state, of the experiments with exported running trials.");
  for (const auto& [experiment, counts] : statistics.running_experiments) {
    AddTrialCounts({{"experiment", experiment}}, counts, experiments);
  }
  MetricFamily info = MakeFamily("lengthwise_trial_info", MetricType::Gauge,
                                 "Always 1; labels identify a running trial and its worker.");
  MetricFamily progress = MakeFamily("lengthwise_trial_progress_ratio", MetricType::Gauge,
                                     "Completed share of a running trial's training or final "
                                     "evaluation, 0 to 1.");
  MetricFamily left = MakeFamily("lengthwise_trial_left_seconds", MetricType::Gauge,
                                 "Estimated seconds until a running trial ends, from its worker.");
  MetricFamily loss = MakeFamily("lengthwise_trial_loss", MetricType::Gauge,
                                 "Training loss of a running trial's newest step: cross-entropy in "
                                 "nats, or mean squared error for a regression.");
  MetricFamily unseen = MakeFamily("lengthwise_trial_unseen_accuracy", MetricType::Gauge,
                                   "Mean accuracy on unseen lengths in a running trial's newest "
                                   "evaluation, 0 to 1.");
  MetricFamily accuracy = MakeFamily("lengthwise_trial_accuracy", MetricType::Gauge,
                                     "Mean accuracy on a range of lengths in a running trial's "
                                     "newest evaluation, 0 to 1.");
  for (const RunningTrial& trial : statistics.running_trials) {
    const Labels labels = {{"experiment", trial.experiment_id}, {"trial", trial.trial_id}};
    const auto with = [&labels](Labels more) {
      more.insert(more.begin(), labels.begin(), labels.end());
      return more;
    };
    AddValue(with({{"worker", trial.worker},
                   {"task", trial.task},
                   {"network", trial.network},
                   {"encoding", trial.encoding}}),
             1, info);
    if (trial.progress.phase() != v1::TrialProgress::PHASE_UNSPECIFIED) {
      AddValue(with({{"phase", "training"}}), Done(trial.progress, v1::TrialProgress::TRAINING),
               progress);
      AddValue(with({{"phase", "evaluation"}}), Done(trial.progress, v1::TrialProgress::EVALUATING),
               progress);
      // Not a number until the attempt's first step.
      if (!std::isnan(trial.progress.loss())) AddValue(labels, trial.progress.loss(), loss);
      if (trial.progress.seconds_left() > 0) {
        AddValue(labels, trial.progress.seconds_left(), left);
      }
    }
    if (trial.unseen_accuracy.has_value()) AddValue(labels, *trial.unseen_accuracy, unseen);
    for (const auto& [bucket, mean] : trial.accuracies) {
      AddValue(with({{"length_bucket", bucket}}), mean, accuracy);
    }
  }
  return {std::move(experiments), std::move(info),   std::move(progress), std::move(left),
          std::move(loss),        std::move(unseen), std::move(accuracy)};
}

}  // namespace

Families ToMetrics(const Statistics& statistics) {
  const DecisionCounts& decided = statistics.decided;
  Families families = {
      Trials(statistics.trials), WantedWorkers(statistics.wanted_workers),
      Counts("lengthwise_decisions_total", "Scheduler decisions, by kind.", "decision",
             decided.decisions),
      Counts("lengthwise_trial_retries_total", "Requeued trials, by reason.", "reason",
             decided.retries),
      Counts("lengthwise_trial_failures_total", "Trials that failed permanently, by reason.",
             "reason", decided.failures)};
  for (const Metric& metric : kMetrics) {
    const double value = std::visit(
        [&](auto of) { return static_cast<double>(std::invoke(of, statistics)); }, metric.value);
    AddValue({}, value, families.emplace_back(MakeFamily(metric.name, metric.type, metric.help)));
  }
  for (const Distribution& distribution : kDistributions) {
    AddHistogram({}, statistics.*distribution.value,
                 families.emplace_back(
                     MakeFamily(distribution.name, MetricType::Histogram, distribution.help)));
  }
  Append(OwnerMetrics(statistics.owners), families);
  Append(TrialMetrics(statistics), families);
  Append(monitoring::WorkerMetrics(statistics.workers), families);
  return families;
}

}  // namespace lengthwise::server
