// What a watcher knows of an experiment: events and progress folded into the state of each trial.
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

// The parts of a trial's point of the grid in which it differs from the experiment's other trials;
// the encoding where it differs in nothing.
struct TrialLabel {
  // Labels of components: "bucket_sort", "sin_cos"; as many in all trials of an experiment.
  std::vector<std::string> names;
  // "lr 0.001 seed 3".
  std::string numbers;

  // "bucket_sort sin_cos lr 0.001 seed 3".
  std::string Text() const;
};

struct TrialView {
  std::string name;
  // What tells it from the experiment's other trials, in parts and as text.
  TrialLabel parts;
  std::string label;
  int64_t total_steps = 0;

  v1::TrialState state = v1::QUEUED;
  std::string reason;
  std::string worker;
  int32_t attempt = 0;
  absl::Time start_time = absl::InfinitePast();  // of the newest attempt
  absl::Time end_time = absl::InfinitePast();

  // Measured, by step; of losses the newest alone, for a trial may have hundred thousands. A
  // resumed attempt drops what lies beyond its checkpoint.
  std::map<int64_t, float> losses;
  struct Accuracy {
    // LengthAccuracies.seen_accuracy and .unseen_accuracy.
    std::optional<double> seen;
    std::optional<double> unseen;
    bool final = false;
  };
  std::map<int64_t, Accuracy> accuracies;

  // Of a running trial, as its worker last said. Steps never go back but by a resumed attempt.
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
  // The newest of what is measured and what the worker says.
  std::optional<float> loss() const;
  // 0 to 1.
  double fraction() const;
};

// A pure fold: the same events give the same view, whatever way they came. Not thread-safe.
class ExperimentView {
 public:
  // `trials` as ListTrials gives them. Their states are taken from the events alone when the watch
  // starts at the first
  // (`from_beginning`), and from `trials` otherwise.
  ExperimentView(const std::vector<v1::Trial>& trials, bool from_beginning);

  // Takes up the trials that were added since, as by `lengthwise extend`; `trials` as for the
  // constructor. What is known of the others stays, but for their labels: trials may differ in more
  // now.
  void AddTrials(const std::vector<v1::Trial>& trials);

  // False, and without effect, for an event that was applied before (by its position) and for one
  // of a trial that is not known.
  bool Apply(const v1::Event& event);
  void Apply(const v1::TrialProgress& progress);

  // In the order of the grid.
  const std::vector<TrialView>& trials() const { return trials_; }
  // Null: not known.
  const TrialView* Find(const std::string& name) const;

  v1::TrialCounts Counts() const;
  bool all_ended() const;
  // Mean of the trials' fractions, 0 to 1.
  double fraction() const;
  // Of all running trials together.
  double steps_per_second() const;
  // For what is queued and running, at the present speed; nullopt while nothing runs.
  std::optional<absl::Duration> time_left() const;

 private:
  const bool from_beginning_;
  std::vector<TrialView> trials_;
  std::unordered_map<std::string, size_t> index_;
  int64_t last_position_ = 0;
};

std::vector<TrialLabel> TrialLabels(const std::vector<v1::Trial>& trials);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_EXPERIMENT_VIEW_H_
