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

#include "absl/strings/str_cat.h"

namespace lengthwise::server {
namespace {

using monitoring::AddHistogram;
using monitoring::AddValue;
using monitoring::Families;
using monitoring::Labels;
using monitoring::MakeFamily;
using prometheus::MetricFamily;

// A family with a single series.
struct Metric {
  const char* name;
  std::variant<int64_t Statistics::*, double Statistics::*, bool Statistics::*,
               size_t (*)(const Statistics&)>
      value;
};

constexpr Metric kMetrics[] = {
    {"lengthwise_queue_oldest_seconds", &Statistics::oldest_queued_seconds},
    {"lengthwise_leases", &Statistics::leases},
    {"lengthwise_lease_expiries_total", &Statistics::lease_expiries},
    {"lengthwise_workers_alive", [](const Statistics& s) { return s.workers.size(); }},
    {"lengthwise_workers_lost_total", &Statistics::lost_workers},
    {"lengthwise_workers_drained", &Statistics::drained_workers},
    {"lengthwise_queue_paused", &Statistics::queue_paused},
    {"lengthwise_workers_unfit", &Statistics::unfit_workers},
    {"lengthwise_events_stored_total", &Statistics::events_stored},
    {"lengthwise_points_stored_total", &Statistics::points_stored},
    {"lengthwise_commit_failures_total", &Statistics::commit_failures},
    {"lengthwise_example_files_stored_total", &Statistics::example_files_stored},
    {"lengthwise_example_bytes_stored_total", &Statistics::example_bytes_stored},
    {"lengthwise_database_bytes", &Statistics::database_bytes},
    {"lengthwise_last_backup_timestamp_seconds", &Statistics::last_backup_seconds},
    {"lengthwise_last_backup_failed", &Statistics::last_backup_failed},
    {"lengthwise_disk_free_bytes", &Statistics::disk_free_bytes},
    {"lengthwise_disk_bytes", &Statistics::disk_size_bytes},
    {"lengthwise_disk_full", &Statistics::disk_full},
};

struct Distribution {
  const char* name;
  v1::Histogram Statistics::*value;
};

constexpr Distribution kDistributions[] = {
    {"lengthwise_lease_trials", &Statistics::lease_trials},
    {"lengthwise_commit_seconds", &Statistics::commit_seconds},
    {"lengthwise_commit_commands", &Statistics::commit_commands},
    {"lengthwise_commit_events", &Statistics::commit_events},
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

template <typename Value>
MetricFamily Counts(const char* name, const char* label, const std::map<Value, int64_t>& counts) {
  MetricFamily family = MakeFamily(name);
  for (const auto& [value, count] : counts) {
    AddValue({{label, absl::StrCat(value)}}, static_cast<double>(count), family);
  }
  return family;
}

// Owners with series of their own in one family. The others are summed, so that scrapes stay small.
constexpr size_t kMostOwners = 50;

MetricFamily ByOwner(const char* name, const std::vector<v1::OwnerUsage>& owners,
                     double (*value)(const v1::OwnerUsage&)) {
  std::vector<std::pair<double, std::string>> largest;
  for (const v1::OwnerUsage& owner : owners) largest.emplace_back(value(owner), owner.owner());
  std::sort(largest.rbegin(), largest.rend());
  // A sum, because an owner may be named "other".
  std::map<std::string, double> series;
  for (size_t i = 0; i < largest.size(); ++i) {
    series[i < kMostOwners ? largest[i].second : "other"] += largest[i].first;
  }
  MetricFamily family = MakeFamily(name);
  for (const auto& [owner, sum] : series) AddValue({{"owner", owner}}, sum, family);
  return family;
}

Families OwnerMetrics(const std::vector<v1::OwnerUsage>& owners) {
  using Owner = v1::OwnerUsage;
  return {ByOwner("lengthwise_owner_disk_bytes", owners,
                  [](const Owner& owner) { return static_cast<double>(owner.bytes()); }),
          ByOwner("lengthwise_owner_trials", owners,
                  [](const Owner& owner) { return static_cast<double>(owner.trials()); }),
          ByOwner("lengthwise_owner_steps", owners,
                  [](const Owner& owner) { return static_cast<double>(owner.steps()); }),
          ByOwner("lengthwise_owner_worker_seconds", owners,
                  [](const Owner& owner) { return owner.worker_seconds(); })};
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
  MetricFamily experiments = MakeFamily("lengthwise_experiment_trials");
  for (const auto& [experiment, counts] : statistics.running_experiments) {
    AddTrialCounts({{"experiment", experiment}}, counts, experiments);
  }
  MetricFamily info = MakeFamily("lengthwise_trial_info");
  MetricFamily progress = MakeFamily("lengthwise_trial_progress_ratio");
  MetricFamily left = MakeFamily("lengthwise_trial_left_seconds");
  MetricFamily loss = MakeFamily("lengthwise_trial_loss");
  MetricFamily unseen = MakeFamily("lengthwise_trial_unseen_accuracy");
  MetricFamily accuracy = MakeFamily("lengthwise_trial_accuracy");
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
  Families families = {MakeFamily("lengthwise_trials"),
                       Counts("lengthwise_wanted_workers", "pack_size", statistics.wanted_workers),
                       Counts("lengthwise_decisions_total", "decision", decided.decisions),
                       Counts("lengthwise_trial_retries_total", "reason", decided.retries),
                       Counts("lengthwise_trial_failures_total", "reason", decided.failures)};
  AddTrialCounts({}, statistics.trials, families.front());
  for (const Metric& metric : kMetrics) {
    const double value = std::visit(
        [&](auto of) { return static_cast<double>(std::invoke(of, statistics)); }, metric.value);
    AddValue({}, value, families.emplace_back(MakeFamily(metric.name)));
  }
  for (const Distribution& distribution : kDistributions) {
    AddHistogram({}, statistics.*distribution.value,
                 families.emplace_back(MakeFamily(distribution.name)));
  }
  Append(OwnerMetrics(statistics.owners), families);
  Append(TrialMetrics(statistics), families);
  Append(monitoring::WorkerMetrics(statistics.workers), families);
  return families;
}

}  // namespace lengthwise::server
