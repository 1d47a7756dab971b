// Summarizes an experiment's accuracy by length, separately for lengths seen and not seen in
// training. Tasks that are compared by loss have loss instead of accuracy.
#ifndef LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_
#define LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/display/chart.h"
#include "client/display/records.h"
#include "client/display/table.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// Returns the display name of a task, a network or an encoding: its label, or its name if it has
// none.
std::string Label(const v1::Component& component);

// A grid point without seeds: the average of the trials that differ only in their seeds.
struct AccuracyRow {
  std::string task;
  std::string network;
  std::string encoding;
  double learning_rate = 0;
  // Trials averaged.
  int trials = 0;
  // By length: the trials' mean accuracy, 0 to 1, or median loss.
  std::map<int32_t, double> scores;
  // Accuracy: mean of `scores` over the lengths. Loss: median over the trials of each trial's mean
  // over the lengths. NaN if there are no such lengths.
  double seen = 0;
  double unseen = 0;
  // Standard deviation over the trials of their mean accuracy on unseen lengths. NaN for fewer than
  // two trials and for losses.
  double unseen_deviation = 0;
  // Mean score by which choices rank it, higher is better (Cell.selection). NaN without one.
  double selection = 0;
  // Mean and standard deviation over the trials of the accuracy on examples of their own data sets
  // (evaluation.training_examples). NaN if no trial, or fewer than two trials for the deviation,
  // scored any.
  double training = 0;
  double training_deviation = 0;
};

struct AccuracySummary {
  // In grid order. Only succeeded trials count.
  std::vector<AccuracyRow> rows;
  // Names of the lengths and of the score: TaskEntry::axis, axis_title and accuracy_title of the
  // experiment's tasks.
  std::string axis = "length";
  std::string axis_title = "input length";
  // True if scores are losses (TaskEntry::compared_by_loss), for which lower is better.
  // `score_title` names them.
  bool is_loss = false;
  std::string score_title = "token accuracy";
  // Evaluation.seen_up_to: lengths up to it count as seen. 0 if none does.
  int32_t seen_up_to = 0;
  // Lengths in training. Empty if unknown, or if the axis is not training.lengths
  // (TaskEntry::seen_up_to). If tasks differ in it (their files do), those of any task; and those
  // of all tasks.
  std::set<int32_t> trained;
  std::set<int32_t> trained_by_all;
  // Evaluated lengths, ascending.
  std::vector<int32_t> lengths;
  // Sequences per length. With `fewer_sequences`, some lengths have fewer, because a test file
  // does.
  int32_t sequences = 0;
  bool fewer_sequences = false;
  // Trials that have not succeeded, including unfinished ones.
  int missing_trials = 0;
};

// "Token accuracy by input length, per cent (200 sequences per length; trained on lengths up to
// 20)", "Mean squared error by scale of the numbers, median over trials (...". If training ended
// elsewhere or some task's did not show all evaluated lengths that count as seen, it says both.
std::string Caption(const AccuracySummary& summary);

// "Random guess: 20 %.", or "Random guess: 50 % (even_pairs, parity_check), 20 % (bucket_sort)."
// Omits tasks whose chance is not known or nothing. Empty without others.
std::string RandomGuess(const v1::ExperimentSpecification& specification);

// Headings of the seen and the unseen lengths: "seen in training" and "not seen"; "up to 40" and
// "above 40" where that is not what training showed.
std::pair<std::string, std::string> SideHeadings(const AccuracySummary& summary);

// Combines an experiment's stored specification with the server's summary.
AccuracySummary Summarize(const v1::ExperimentSpecification& specification,
                          const v1::SummarizeExperimentResponse& summary);

// Formats a score for tables: per cent, or a loss with three digits.
std::string FormatScore(const AccuracySummary& summary, double score);

// Makes a table of scores with as many lengths (or averaged groups of lengths) as fit `width`, at
// least one seen and one unseen group. The best mean of each task is marked. Columns whose value is
// the same in all rows are omitted; the encoding's stays if no other is left. With sparklines each
// row ends with the shape of its curve, if there is room for both.
Table MakeAccuracyTable(const AccuracySummary& summary, int width, bool with_sparklines = false);

// Draws each value from 0 to 1 as a block of that height: "▁▅█". NaN is a space.
std::string Sparkline(const std::vector<double>& values);

// Makes a chart with one curve per row, at most the `max_series` rows with the highest `selection`;
// of several tasks the best of each, then the second of each. Losses have a logarithmic
// scale.
Chart MakeAccuracyChart(const AccuracySummary& summary, size_t max_series);

// Writes one row per trial and length without averaging, including the evaluations during training
// if `accuracies` has them. After the usual columns follow one for each of LengthAccuracies.metrics
// that any evaluation has, and the training accuracy if a trial has one. AnswerErrors of `analyses`
// (Connection::QueryAnalyses) are added to the rows of the final evaluations.
void WriteAccuracies(const std::vector<v1::Trial>& trials,
                     const v1::QueryLengthAccuraciesResponse& accuracies,
                     const std::vector<v1::Event>& analyses, RecordFormat format,
                     std::ostream& out);

// A range of a list of lengths: indices [begin, end).
struct LengthGroup {
  size_t begin = 0;
  size_t end = 0;
};

// Divides `count` lengths into at most `most` groups of nearly equal size. The size is equal if
// some number of groups between half of `most` and `most` allows it.
std::vector<LengthGroup> GroupLengths(size_t count, size_t most);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_
