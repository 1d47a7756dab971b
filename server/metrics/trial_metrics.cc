#include "server/metrics/trial_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace lengthwise::server {
namespace {

using monitoring::AddValue;
using monitoring::Labels;
using monitoring::MakeFamily;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Returns the completed share of `phase`, 0 to 1: 1 for a phase that the trial has left behind, 0
// for one that it has not reached.
double Done(const v1::TrialProgress& progress, v1::TrialProgress::Phase phase) {
  if (progress.phase() != phase) return progress.phase() > phase ? 1 : 0;
  if (progress.total() <= 0) return 0;
  return std::min(1.0,
                  static_cast<double>(progress.done()) / static_cast<double>(progress.total()));
}

}  // namespace

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

std::vector<MetricFamily> TrialMetrics(const Statistics& statistics) {
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

}  // namespace lengthwise::server
