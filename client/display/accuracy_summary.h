// Summarizes an experiment's accuracy by length, separately for lengths seen and not seen in
// training. Tasks that are compared by loss have loss instead of accuracy.
#ifndef LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_
#define LENGTHWISE_CLIENT_DISPLAY_ACCURACY_SUMMARY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/display/chart.h"
#include "client/display/records.h"
#include "client/display/table.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// A grid point without seeds: the average of the trials that differ only in their seeds.
using AccuracyRow = v1::SummarizeExperimentResponse::Cell;

struct AccuracySummary {
  // Those of which a trial has succeeded, in grid order.
  std::vector<AccuracyRow> rows;
  v1::SummarizeExperimentResponse::Heading heading;
  // Evaluated lengths, ascending.
  std::vector<int32_t> lengths;
  // Trials that have not succeeded, including unfinished ones.
  int missing_trials = 0;
};

// Takes the rows from the server's summary.
AccuracySummary Summarize(const v1::SummarizeExperimentResponse& summary);

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
