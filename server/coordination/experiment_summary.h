// ExperimentSummary: an experiment's results by cell, updated as trials finish; the answer of
// SummarizeExperiment. Pure: uses neither store nor threads.
//
// The answer does not depend on the order of updates, to the last bit. Scores are kept by trial and
// summed in the order of the grid. Accuracies by length are too many to keep by trial. They are
// summed as multiples of 2^-40, and such sums are exact: a mean is off by at most 2^-41.
#ifndef LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_
#define LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::server {

// Not thread-safe.
class ExperimentSummary {
 public:
  // The properties of a trial that are known before it runs.
  struct Trial {
    int32_t index = 0;  // index in the grid
    std::string id;
    // Labels.
    std::string task;
    std::string network;
    std::string encoding;
    double learning_rate = 0;
    // training.steps of its specification.
    int64_t steps = 0;
    // True if evaluation.select is "unseen".
    bool select_unseen = false;
    // True if results are losses (tasks::TaskEntry::compared_by_loss).
    bool compared_by_loss = false;
  };

  // Adds a trial, QUEUED. No-op for a known trial.
  void Add(Trial trial);

  // Sets a trial's state. No-op if the trial has ended or is unknown.
  void SetState(int32_t index, v1::TrialState state);

  // The trial succeeded. `accuracies` is the final evaluation of the attempt that completed:
  // columns of equal length, with mean accuracies (proto/length_accuracies.h); no lengths if there
  // was none. Accuracies are clamped (ClampAccuracy). No-op if the trial has ended or is unknown.
  void Succeed(int32_t index, const v1::LengthAccuracies& accuracies, const v1::Outcome& outcome);

  // Chooses by `select`: "seen", "unseen" or, for the specification's rule, "". O(trials + cells x
  // lengths).
  v1::SummarizeExperimentResponse Summarize(absl::string_view select = "") const;

 private:
  using CellKey = std::tuple<std::string, std::string, std::string, double>;
  struct Member {
    Trial trial;  // without the labels, which its cell has
    size_t cell = 0;
    v1::TrialState state = v1::QUEUED;
    // Of a trial that succeeded: the means of its final evaluation, with the losses by length if it
    // is compared by them.
    v1::LengthAccuracies evaluation;
    double training_seconds = 0;  // 0: it trained nothing
  };
  struct LengthSum {
    int32_t length = 0;
    int32_t trials = 0;
    int64_t sum = 0;  // multiples of 2^-40
  };
  struct Cell {
    CellKey key;
    std::vector<int32_t> members;    // indices, ascending
    std::vector<LengthSum> lengths;  // ascending
  };

  // Null if the trial has ended or is unknown.
  Member* FindUnended(int32_t index);
  void FillCell(const Cell& cell, absl::string_view select,
                v1::SummarizeExperimentResponse::Cell& answer) const;
  void FillLosses(const Cell& cell, v1::SummarizeExperimentResponse::Cell& answer) const;
  static void AddAccuracy(int32_t length, double accuracy, size_t hint, Cell& cell);

  absl::flat_hash_map<int32_t, Member> members_;
  std::vector<Cell> cells_;
  absl::flat_hash_map<CellKey, size_t> cell_of_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_
