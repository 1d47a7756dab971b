// A watcher's view of an experiment: folds events and progress into the state of each trial. Labels
// of trials, which LabelFit shortens to the width that a terminal has for them.
#ifndef LENGTHWISE_CLIENT_WATCHING_EXPERIMENT_VIEW_H_
#define LENGTHWISE_CLIENT_WATCHING_EXPERIMENT_VIEW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// The coordinates in which a trial differs from the experiment's other trials; the encoding if it
// differs in none.
struct TrialLabel {
  // Labels of components: "bucket_sort", "sin_cos". All trials of an experiment have the same
  // number.
  std::vector<std::string> names;
  // "lr 0.001 seed 3".
  std::string numbers;

  // "bucket_sort sin_cos lr 0.001 seed 3".
  std::string Text() const;
};

struct TrialView {
  std::string name;
  // Distinguishes it from the experiment's other trials, in parts and as text.
  TrialLabel parts;
  std::string label;
  int64_t total_steps = 0;

  v1::TrialState state = v1::QUEUED;
  std::string reason;
  std::string worker;
  int32_t attempt = 0;
  absl::Time start_time = absl::InfinitePast();  // of the latest attempt
  absl::Time end_time = absl::InfinitePast();

  // Measured values by step. Only the newest losses are kept, because a trial may have hundreds of
  // thousands. A resumed attempt drops the values after its checkpoint.
  std::map<int64_t, float> losses;
  // Name of the losses that stand for accuracies (TaskEntry::loss_title), if the task is compared
  // by loss.
  std::string loss_title;
  struct Accuracy {
    // LengthAccuracies.seen_accuracy and .unseen_accuracy, or .seen_loss and .unseen_loss.
    std::optional<double> seen;
    std::optional<double> unseen;
    bool final = false;
  };
  std::map<int64_t, Accuracy> accuracies;

  // Last progress report of a running trial's worker. Only a resumed attempt decreases the steps.
  v1::TrialProgress::Phase phase = v1::TrialProgress::PHASE_UNSPECIFIED;
  int64_t steps_done = 0;
  int64_t lengths_done = 0;  // while evaluating
  int64_t lengths_total = 0;
  double steps_per_second = 0;
  double seconds_left = 0;
  std::optional<float> progress_loss;

  bool ended() const {
    return state == v1::SUCCEEDED || state == v1::FAILED || state == v1::CANCELLED;
  }
  // The last point of the loss curve; before the first, the newest batch's loss.
  std::optional<float> loss() const;
  // 0 to 1.
  double fraction() const;
};

// A pure fold: the same events give the same view, however they are split into responses. Not
// thread-safe.
class ExperimentView {
 public:
  // `trials` is the result of ListTrials. If the watch starts at the first event
  // (`from_beginning`), their states come from the events alone, otherwise from `trials`.
  ExperimentView(const std::vector<v1::Trial>& trials, bool from_beginning);

  // Adds the trials created since, as by `lengthwise extend`; `trials` as for the constructor. The
  // state of known trials stays. Their labels are recomputed, because trials may now differ in more
  // coordinates.
  void AddTrials(const std::vector<v1::Trial>& trials);

  // Idempotent: returns false, without effect, for an event that was applied before (by its
  // position) and for an event of an unknown trial.
  bool Apply(const v1::Event& event);
  void Apply(const v1::TrialProgress& progress);

  // In grid order.
  const std::vector<TrialView>& trials() const { return trials_; }
  // Null if unknown.
  const TrialView* Find(const std::string& name) const;

  v1::TrialCounts Counts() const;
  bool all_ended() const;
  // Mean of the trials' fractions, 0 to 1.
  double fraction() const;
  // Sum over all running trials.
  double steps_per_second() const;
  // Time for the queued and running trials at the current speed; nullopt while nothing runs.
  std::optional<absl::Duration> time_left() const;

 private:
  const bool from_beginning_;
  std::vector<TrialView> trials_;
  std::unordered_map<std::string, size_t> index_;
  int64_t last_position_ = 0;
};

// Returns TaskEntry::loss_title if the trial's task is compared by loss; empty for others, which
// are compared by accuracy.
std::string LossTitle(const v1::TrialSpecification& specification);

// Returns the server's means of the evaluation.
TrialView::Accuracy MeansOf(const v1::LengthAccuracies& measured, bool by_loss);

std::vector<TrialLabel> TrialLabels(const std::vector<v1::Trial>& trials);

// Shortened labels stay distinct: component names lose letters at their ends or in their middles,
// the longest first. Learning rates and seeds stay whole. Labels that fit stay unchanged.
class LabelFit {
 public:
  // Labels take at most `wanted` terminal columns if they stay distinct, and never more than
  // `most`.
  LabelFit(const std::vector<TrialView>& trials, int wanted, int most);

  // Width of the longest label in terminal columns.
  int width() const { return width_; }
  // Returns the label of one of the trials, at most width() columns wide.
  std::string operator()(const TrialView& trial) const;

 private:
  // The names at one index of all labels.
  struct Column {
    int width = 0;
    // Cuts letters from the middle, because the beginnings alone would not be distinct.
    bool middle = false;
  };

  bool fits_ = true;
  int width_ = 0;
  std::vector<Column> columns_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_EXPERIMENT_VIEW_H_
