// What figures with one panel a task have in common.
#ifndef LENGTHWISE_CLIENT_PLOTTING_TASK_PANELS_H_
#define LENGTHWISE_CLIENT_PLOTTING_TASK_PANELS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/plotting/figure.h"
#include "client/plotting/trial_groups.h"

namespace lengthwise::client {

// Values at the x's of trials, to be averaged.
class SeedCurves {
 public:
  // A trial's curve, y by x; an empty one does not count.
  void Add(const std::map<double, double>& curve) {
    if (!curve.empty()) curves_.push_back(curve);
  }
  size_t size() const { return curves_.size(); }

  // Mean, lowest and highest at the x's of the curve that ends first, as far as all curves reach:
  // no step in the mean comes from a curve that begins or ends. Between its points a curve is
  // straight.
  std::vector<SeriesPoint> Mean() const;

  // Median, 10th and 90th percentile, as Mean.
  std::vector<SeriesPoint> Median() const;

 private:
  // The curves' values at the x's that Mean speaks of.
  std::vector<std::pair<double, std::vector<double>>> Values() const;

  std::vector<std::map<double, double>> curves_;
};

// "random guess 20 %"; none for a task whose guessing accuracy is not known or nothing.
std::optional<Reference> GuessReference(const v1::Component& task);

// The lengths of training, if all trials of the task in these groups have the same.
std::optional<std::pair<double, double>> TrainingLengths(const std::vector<TrialGroup>& groups,
                                                         const v1::Component& task);

// From 0 to 100 %.
Axis AccuracyAxis(const std::string& label);

// Sets the y axis to the panels' points, all of them losses: logarithmic where they differ by much,
// and then over a few powers of ten at most; a loss of exactly 0 is drawn at its lower end.
void SetLossAxis(Figure& figure);

// Sets the x axis from 0 to the last step that is drawn.
void SetStepAxis(Figure& figure);

// The error of a figure that needs evaluations during training where there are none.
absl::Status NoIntervalEvaluation(const std::vector<PlotExperiment>& experiments);

// The error of a figure that needs final evaluations where there are none.
absl::Status NoFinalEvaluation(const std::vector<PlotExperiment>& experiments);

// "2 of 6 trials have no final evaluation.", "1 of 6 trials has ..."; empty where all have.
std::string MissingTrials(const std::vector<PlotExperiment>& experiments);

// Columns for so many panels: 1, 2, 3, 2 (four panels), 3, ... at most 4.
int PanelColumns(size_t panels);

// What the averaging was; Describe appends it to the captions.
struct Averaging {
  size_t most_seeds = 1;
  bool several_rates = false;
  bool is_median = false;
};
void Describe(const Averaging& averaging, const std::string& best_by, Figure& figure);

// INVALID_ARGUMENT for more panels than a page has room for, with how to have fewer.
absl::Status CheckPanels(size_t panels);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_TASK_PANELS_H_
