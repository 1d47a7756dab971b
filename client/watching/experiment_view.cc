#include "client/watching/experiment_view.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/display/numbers.h"
#include "proto/component_label.h"
#include "proto/timestamps.h"
#include "proto/training_points.h"
#include "proto/trial_counts.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

// Usually enough that some remain when an attempt resumes from its last checkpoint.
constexpr size_t kMostLosses = 64;

template <typename Value>
void EraseBeyond(std::map<int64_t, Value>& measured, int64_t step) {
  measured.erase(measured.upper_bound(step), measured.end());
}

void ApplyStateChange(const v1::Event& event, TrialView& trial) {
  const v1::StateChange& change = event.state_change();
  trial.state = change.to();
  trial.reason = change.reason();
  trial.phase = v1::TrialProgress::PHASE_UNSPECIFIED;
  trial.steps_per_second = 0;
  trial.seconds_left = 0;
  if (change.to() == v1::RUNNING) {
    trial.worker = change.worker();
    trial.attempt = std::max(trial.attempt, event.attempt());
    trial.start_time = ToTime(event.time());
    EraseBeyond(trial.losses, change.resumed_from_step());
    EraseBeyond(trial.accuracies, change.resumed_from_step());
    trial.steps_done = change.resumed_from_step();
    trial.progress_loss.reset();
  }
  if (trial.ended()) {
    trial.end_time = ToTime(event.time());
    trial.progress_loss.reset();
  }
}

}  // namespace

std::optional<float> TrialView::loss() const {
  if (losses.empty()) return progress_loss;
  return losses.rbegin()->second;
}

double TrialView::fraction() const {
  if (ended()) return 1;
  if (total_steps <= 0) return 0;
  return std::min(1.0, static_cast<double>(steps_done) / static_cast<double>(total_steps));
}

ExperimentView::ExperimentView(const std::vector<v1::Trial>& trials, bool from_beginning)
    : from_beginning_(from_beginning) {
  AddTrials(trials);
}

void ExperimentView::AddTrials(const std::vector<v1::Trial>& trials) {
  const std::vector<TrialLabel> labels = TrialLabels(trials);
  std::vector<TrialView> all;
  for (size_t i = 0; i < trials.size(); ++i) {
    TrialView& view = all.emplace_back();
    const auto known = index_.find(trials[i].name());
    if (known != index_.end()) {
      view = std::move(trials_[known->second]);
    } else {
      view.name = trials[i].name();
      view.total_steps = trials[i].specification().training().steps();
      view.reason = trials[i].reason();
      view.loss_title = LossTitle(trials[i].specification());
      if (!from_beginning_) {
        view.state = trials[i].state();
        view.worker = trials[i].worker();
        view.attempt = trials[i].attempt();
        view.steps_done = trials[i].checkpoint_step();
      }
    }
    view.parts = labels[i];
    view.label = labels[i].Text();
  }
  trials_ = std::move(all);
  index_.clear();
  for (size_t i = 0; i < trials_.size(); ++i) index_[trials_[i].name] = i;
}

const TrialView* ExperimentView::Find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &trials_[found->second];
}

bool ExperimentView::Apply(const v1::Event& event) {
  if (event.position() != 0 && event.position() <= last_position_) return false;
  const auto found = index_.find(event.trial());
  if (found == index_.end()) return false;
  last_position_ = std::max(last_position_, event.position());
  TrialView& trial = trials_[found->second];
  switch (event.fact_case()) {
    case v1::Event::kStateChange:
      ApplyStateChange(event, trial);
      break;
    case v1::Event::kTrainingPoints: {
      const v1::TrainingPoints& points = event.training_points();
      for (int i = 0; i < std::min(points.steps_size(), points.losses_size()); ++i) {
        trial.losses[points.steps(i)] = MeanLoss(points, i);
        trial.steps_done = std::max(trial.steps_done, points.steps(i));
      }
      // The first event may come before the first report of progress.
      if (trial.phase == v1::TrialProgress::PHASE_UNSPECIFIED && trial.state == v1::RUNNING) {
        trial.phase = v1::TrialProgress::TRAINING;
      }
      while (trial.losses.size() > kMostLosses) trial.losses.erase(trial.losses.begin());
      break;
    }
    case v1::Event::kLengthAccuracies: {
      const v1::LengthAccuracies& measured = event.length_accuracies();
      TrialView::Accuracy& accuracy = trial.accuracies[event.step()];
      accuracy = MeansOf(measured, !trial.loss_title.empty());
      trial.steps_done = std::max(trial.steps_done, event.step());
      break;
    }
    default:
      trial.steps_done = std::max(trial.steps_done, event.step());
      break;
  }
  return true;
}

void ExperimentView::Apply(const v1::TrialProgress& progress) {
  const auto found = index_.find(progress.trial());
  if (found == index_.end()) return;
  TrialView& trial = trials_[found->second];
  // Stale: a report of an earlier attempt, or one that arrived after the end.
  if (progress.attempt() < trial.attempt || trial.state != v1::RUNNING) return;
  trial.phase = progress.phase();
  trial.seconds_left = progress.seconds_left();
  if (progress.phase() == v1::TrialProgress::EVALUATING) {
    trial.lengths_done = progress.done();
    trial.lengths_total = progress.total();
    return;
  }
  trial.steps_done = std::max(trial.steps_done, progress.done());
  trial.steps_per_second = progress.steps_per_second();
  if (progress.done() > 0 && !std::isnan(progress.loss())) trial.progress_loss = progress.loss();
}

v1::TrialCounts ExperimentView::Counts() const {
  v1::TrialCounts counts;
  for (const TrialView& trial : trials_) CountTrials(trial.state, 1, counts);
  return counts;
}

bool ExperimentView::all_ended() const {
  return std::all_of(trials_.begin(), trials_.end(),
                     [](const TrialView& trial) { return trial.ended(); });
}

double ExperimentView::fraction() const {
  if (trials_.empty()) return 0;
  double sum = 0;
  for (const TrialView& trial : trials_) sum += trial.fraction();
  return sum / static_cast<double>(trials_.size());
}

double ExperimentView::steps_per_second() const {
  double sum = 0;
  for (const TrialView& trial : trials_) {
    if (trial.state == v1::RUNNING) sum += trial.steps_per_second;
  }
  return sum;
}

std::optional<absl::Duration> ExperimentView::time_left() const {
  const double speed = steps_per_second();
  if (speed <= 0) return std::nullopt;
  double steps = 0;
  double longest = 0;  // lower bound: the slowest trial's own estimate
  for (const TrialView& trial : trials_) {
    if (trial.ended()) continue;
    steps += static_cast<double>(std::max<int64_t>(0, trial.total_steps - trial.steps_done));
    longest = std::max(longest, trial.seconds_left);
  }
  return absl::Seconds(std::max(steps / speed, longest));
}

std::string LossTitle(const v1::TrialSpecification& specification) {
  const tasks::TaskEntry* task = tasks::FindTask(specification.task().name());
  return task != nullptr && task->compared_by_loss ? task->loss_title : "";
}

TrialView::Accuracy MeansOf(const v1::LengthAccuracies& measured, bool by_loss) {
  TrialView::Accuracy means{.final = measured.final()};
  if (by_loss) {
    if (measured.has_seen_loss()) means.seen = measured.seen_loss();
    if (measured.has_unseen_loss()) means.unseen = measured.unseen_loss();
  } else {
    if (measured.has_seen_accuracy()) means.seen = measured.seen_accuracy();
    if (measured.has_unseen_accuracy()) means.unseen = measured.unseen_accuracy();
  }
  return means;
}

std::string TrialLabel::Text() const {
  const std::string text = absl::StrJoin(names, " ");
  return absl::StrCat(text, text.empty() || numbers.empty() ? "" : " ", numbers);
}

std::vector<TrialLabel> TrialLabels(const std::vector<v1::Trial>& trials) {
  constexpr size_t kNames = 3;
  std::vector<std::array<std::string, kNames + 2>> coordinates;
  for (const v1::Trial& trial : trials) {
    const v1::TrialSpecification& of = trial.specification();
    const uint64_t weights = of.weight_seed(), data = of.data_seed();
    coordinates.push_back({LabelOf(of.task()), LabelOf(of.network()), LabelOf(of.encoding()),
                           absl::StrCat("lr ", FormatExact(of.learning_rate())),
                           weights == data ? absl::StrCat("seed ", weights)
                                           : absl::StrCat("seeds ", weights, "/", data)});
  }
  std::vector<TrialLabel> labels(trials.size());
  for (size_t c = 0; c < kNames + 2; ++c) {
    const bool differs =
        absl::c_any_of(coordinates, [&](const auto& one) { return one[c] != coordinates[0][c]; });
    for (size_t i = 0; differs && i < trials.size(); ++i) {
      std::string& numbers = labels[i].numbers;
      if (c < kNames) {
        labels[i].names.push_back(coordinates[i][c]);
      } else {
        absl::StrAppend(&numbers, numbers.empty() ? "" : " ", coordinates[i][c]);
      }
    }
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!labels[i].Text().empty()) continue;
    const std::string encoding = LabelOf(trials[i].specification().encoding());
    labels[i].names = {encoding.empty() ? trials[i].name() : encoding};
  }
  return labels;
}

}  // namespace lengthwise::client
