// What an experiment found: accuracy or, of tasks that are compared by it, loss by length, lengths
// seen in training and lengths not seen apart.
#ifndef LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_
#define LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/display/chart.h"
#include "client/display/records.h"
#include "client/display/table.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// What listings call a task, a network or an encoding: its label, or its name where it has none.
std::string Label(const v1::Component& component);

// A point of the grid, seeds aside: the trials that differ only in their seeds, averaged.
struct AccuracyRow {
  std::string task;
  std::string network;
  std::string encoding;
  double learning_rate = 0;
  // Trials averaged.
  int trials = 0;
  // By length: mean over the trials of the accuracy, 0 to 1, or median of the loss.
  std::map<int32_t, double> scores;
  // Means over the lengths of `scores`, or medians over the trials of such means of losses;
  // not-a-number where there are none.
  double seen = 0;
  double unseen = 0;
  // Standard deviation over the trials of their mean accuracies over the unseen lengths;
  // not-a-number for fewer than two, and of losses.
  double unseen_deviation = 0;
  // Mean and standard deviation over the trials of the accuracy on examples of their own data sets;
  // not-a-number where none, or fewer than two, scored any (evaluation.training_examples).
  double training = 0;
  double training_deviation = 0;
};

struct AccuracySummary {
  // In the order of the grid. Only trials that succeeded count.
  std::vector<AccuracyRow> rows;
  // What the lengths are, and the accuracies: TaskEntry::axis, axis_title and accuracy_title of the
  // experiment's tasks.
  std::string axis = "length";
  std::string axis_title = "input length";
  // Whether scores are losses (TaskEntry::compared_by_loss), of which lower ones are better, and
  // what they are.
  bool is_loss = false;
  std::string score_title = "token accuracy";
  // The longest length seen in training; 0 where none is.
  int32_t seen_up_to = 0;
  // Evaluated lengths, ascending.
  std::vector<int32_t> lengths;
  // Sequences per length.
  int32_t sequences = 0;
  // Trials that did not succeed (yet).
  int missing_trials = 0;
};

// "Token accuracy by input length, per cent (200 sequences per length; trained on lengths up to
// 20)", "Mean squared error by scale of the numbers, median over trials (...".
std::string Caption(const AccuracySummary& summary);

// From an experiment's specification, as the server keeps it, and the server's summary.
AccuracySummary Summarize(const v1::ExperimentSpecification& specification,
                          const v1::SummarizeExperimentResponse& summary);

// A score as tables print it: per cent, or a loss with three digits.
std::string FormatScore(const AccuracySummary& summary, double score);

// Scores; as many lengths (or groups of them, averaged) as fit `width`, at least one seen and one
// unseen group. The best mean of a task is marked. Columns that tell no rows apart are left out;
// the encoding's stays where it is the only one.
// With sparklines each row's shape over the lengths stands behind its numbers, where there is room
// for both.
Table MakeAccuracyTable(const AccuracySummary& summary, int width, bool with_sparklines = false);

// A block for each value from 0 to 1, of its height: "▁▅█"; a space for not-a-number.
std::string Sparkline(const std::vector<double>& values);

// One curve a row; only the `max_series` rows best on unseen lengths when there are more. Losses
// have a logarithmic scale.
Chart MakeAccuracyChart(const AccuracySummary& summary, size_t max_series);

// Writes every trial and length, nothing averaged; also the evaluations during training where
// `accuracies` has them. Behind the usual columns one for each LengthAccuracies.metrics that any of
// them has and, where a trial has one, its training accuracy. Where `analyses`
// (Connection::QueryAnalyses) have AnswerErrors, their numbers stand in the rows of the final
// evaluations.
void WriteAccuracies(const std::vector<v1::Trial>& trials,
                     const v1::QueryLengthAccuraciesResponse& accuracies,
                     const std::vector<v1::Event>& analyses, RecordFormat format,
                     std::ostream& out);

// A range of a list of lengths: indices [begin, end).
struct LengthGroup {
  size_t begin = 0;
  size_t end = 0;
};

// Cuts `count` lengths into at most `most` groups of nearly equal size; of equal size where a
// number of groups between half of `most` and `most` allows it.
std::vector<LengthGroup> GroupLengths(size_t count, size_t most);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_
