// Rows of an analysis, one for each set of trials: as a table for people, and as records.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_TABLE_H_
#define LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/analysis/trial_sets.h"
#include "client/rendering/records.h"
#include "client/rendering/table.h"

namespace lengthwise::client {

// Begins each row with what its set is: in records experiment, task, network, encoding and learning
// rate, in tables the encoding and what else differs between rows.
class AnalysisTable {
 public:
  struct Column {
    // In records; empty: in tables alone.
    std::string name;
    // In tables; empty: in records alone.
    std::string header;
    bool rule_before = false;
  };
  struct Cell {
    Value value;
    std::string text;
  };

  explicit AnalysisTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns. The set must outlive the table.
  void AddRow(const TrialSet& set, std::vector<Cell> cells) {
    rows_.emplace_back(&set, std::move(cells));
  }

  // A row for records alone, for an analysis whose records are others than its table's rows: then
  // none of AddRow's are records.
  void AddRecord(const TrialSet& set, std::vector<Cell> cells) {
    records_.emplace_back(&set, std::move(cells));
  }

  Table ToTable() const;
  Records ToRecords() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::pair<const TrialSet*, std::vector<Cell>>> rows_;
  std::vector<std::pair<const TrialSet*, std::vector<Cell>>> records_;
};

// Numbers behind the point are fixed; "–", and no value, for not-a-number.
AnalysisTable::Cell NumberCell(double value, int decimals);
AnalysisTable::Cell CountCell(int64_t value);
// "0.836 ± 0.018" in the first, whose value is the mean; the second has the standard deviation and
// is for records alone.
std::pair<AnalysisTable::Cell, AnalysisTable::Cell> MeanCells(absl::Span<const double> values,
                                                              int decimals);
// An accuracy (0 to 1), in tables in per cent.
std::pair<AnalysisTable::Cell, AnalysisTable::Cell> AccuracyCells(absl::Span<const double> values);
// "0.35", "0.004", "< 0.001".
AnalysisTable::Cell ProbabilityCell(double value);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_ANALYSIS_TABLE_H_
