// An experiment beside a paper's table.
#ifndef LENGTHWISE_CLIENT_COMPARISON_COMPARISON_H_
#define LENGTHWISE_CLIENT_COMPARISON_COMPARISON_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/comparison/aggregation.h"
#include "client/comparison/length_accuracies.h"
#include "client/comparison/published_table.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// A number as tables print it: with as many digits behind the point as is usual for the quantity;
// a loss with three digits.
std::string FormatQuantity(Quantity quantity, double value);

struct ComparisonCell {
  // Absent while no trial of the cell has finished.
  std::optional<Measurement> measured;
  std::optional<PublishedValue> published;
  // The best of its row as it is printed; several share it, none has it where the row has a single
  // value, losses or training accuracies.
  bool best_measured = false;
  bool best_published = false;

  // Measured less published, as printed numbers would be subtracted; losses as they are.
  std::optional<double> Difference(Quantity quantity) const;
  // Measured by published; absent where that is 0.
  std::optional<double> Ratio() const;
};

struct Comparison {
  PublishedTable table;
  // By row, then column, of `table`.
  std::vector<std::vector<ComparisonCell>> cells;
  int cells_run = 0;
  int cell_count = 0;
  // Trials by what became of them here.
  int counted = 0;
  // Of the table's cells, but not finished (waiting, running, failed or cancelled).
  int unfinished = 0;
  // Finished, but evaluated on no length above those of training, or not at the table's.
  int without_value = 0;
  // Of a task, a network or an encoding that the table does not have.
  int elsewhere = 0;
  // Steps of a trial here, and of the paper, where times were scaled from one to the other; else 0.
  int64_t steps = 0;
  int64_t published_steps = 0;

  bool RowWasRun(size_t row) const;
  bool ColumnWasRun(size_t column) const;
};

// From an experiment's specification, as the server keeps it, and its summary. INVALID_ARGUMENT
// where times cannot be compared: the protocol is unknown, or trials stop early. `at_lengths` are
// of the summary's cells, for a table with accuracies at single lengths.
absl::StatusOr<Comparison> Compare(PublishedTable table,
                                   const v1::ExperimentSpecification& specification,
                                   const v1::SummarizeExperimentResponse& summary,
                                   const LengthAccuracyStatistics& at_lengths = {});

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_COMPARISON_H_
