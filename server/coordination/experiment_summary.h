// An experiment's results by cell, kept up to date as its trials finish: what SummarizeExperiment
// answers. Pure: knows neither store nor threads.
//
// What it is told may come in any order of the trials; the answer is the same to the last bit.
// Scores are kept by trial and added up in the order of the grid. Accuracies by length, of which
// there are too many to keep by trial, are added up as multiples of 2^-40, whose sums are exact: a
// mean is off by 2^-41 at most.
#ifndef LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_
#define LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::server {

// Not thread-safe.
class ExperimentSummary {
 public:
  // What is known of a trial before it runs.
  struct Trial {
    int32_t index = 0;  // in the grid
    std::string id;
    // Labels.
    std::string task;
    std::string network;
    std::string encoding;
    double learning_rate = 0;
    // Of its specification: training.steps and evaluation.seen_up_to.
    int64_t steps = 0;
    int32_t seen_up_to = 0;
    // Whether its results are losses (tasks::TaskEntry::compared_by_loss).
    bool compared_by_loss = false;
  };

  // Makes a trial known, QUEUED. One that is known already stays as it is.
  void Add(Trial trial);

  // The trial with this index is in another state. A trial that has ended, or is not known, stays
  // as it is.
  void SetState(int32_t index, v1::TrialState state);

  // The trial ended SUCCEEDED. `accuracies` is its final evaluation, that of the attempt that
  // completed, with columns of equal length and its mean accuracies (proto/length_accuracies.h);
  // without lengths where there is none. Accuracies count as ClampAccuracy has them. As SetState,
  // for a trial that has ended or is not known.
  void Succeed(int32_t index, const v1::LengthAccuracies& accuracies, const v1::Outcome& outcome);

  // O(trials + cells x lengths).
  v1::SummarizeExperimentResponse Summarize(bool omit_lengths) const;

 private:
  using CellKey = std::tuple<std::string, std::string, std::string, double>;
  struct Member {
    std::string id;
    int64_t steps = 0;
    int32_t seen_up_to = 0;
    bool compared_by_loss = false;
    size_t cell = 0;
    v1::TrialState state = v1::QUEUED;
    // Of a trial that succeeded, where it has them.
    std::optional<double> unseen_accuracy;
    std::optional<double> seen_accuracy;
    std::optional<double> training_accuracy;
    std::optional<double> training_seconds;
    std::optional<double> steps_per_second;
    // Final losses by length, of a trial that is compared by them.
    std::map<int32_t, double> losses;
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

  // Null unless the trial is known and has not ended.
  Member* FindUnended(int32_t index);
  void FillCell(const Cell& cell, bool omit_lengths,
                v1::SummarizeExperimentResponse::Cell& answer) const;
  void FillLosses(const Cell& cell, bool omit_lengths,
                  v1::SummarizeExperimentResponse::Cell& answer) const;
  static void AddAccuracy(int32_t length, double accuracy, size_t hint, Cell& cell);

  absl::flat_hash_map<int32_t, Member> members_;
  std::vector<Cell> cells_;
  absl::flat_hash_map<CellKey, size_t> cell_of_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_
