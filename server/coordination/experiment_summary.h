// ExperimentSummary: an experiment's results by cell, updated as trials finish; the answer of
// SummarizeExperiment. Pure: uses neither store nor threads.
//
// The answer does not depend on the order of updates, to the last bit. Scores are kept by trial and
// summed in the order of the grid. Accuracies by length are too many to keep by trial. They are
// summed as multiples of 2^-40, and such sums are exact: a mean is off by at most 2^-41.
#ifndef LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_
#define LENGTHWISE_SERVER_COORDINATION_EXPERIMENT_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/length_accuracies.h"

namespace lengthwise::server {

// Statistics over trials that differ only in seeds.

// NaN without values.
double Mean(absl::Span<const double> values);

// With n - 1 in the denominator, as in tables of few seeds. Computed in two passes, so that values
// that differ little keep their difference. NaN for fewer than two values.
double SampleStandardDeviation(absl::Span<const double> values);

// The quantile `q`, from 0 to 1, with linear interpolation between the two nearest values (NumPy's
// default). 0.5 is the median. NaN without values.
double Quantile(std::vector<double> values, double q);

// Takes one value per trial. Empty without values. The deviation is the sample's, 0 for one value.
v1::SummarizeExperimentResponse::Statistic SeedStatistic(absl::Span<const double> values);

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
    std::string id;
    int64_t steps = 0;
    bool select_unseen = false;
    bool compared_by_loss = false;
    size_t cell = 0;
    v1::TrialState state = v1::QUEUED;
    // Scores of a trial that succeeded, if it has them.
    std::optional<double> unseen_accuracy;
    std::optional<double> seen_accuracy;
    std::optional<double> unseen_loss;
    std::optional<double> seen_loss;
    std::optional<double> training_accuracy;
    std::optional<double> training_seconds;
    std::optional<double> steps_per_second;
    // By the rules "seen" and "unseen".
    std::optional<SelectionScore> by_seen, by_unseen;
    // Final losses by length, if the trial is compared by losses.
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
