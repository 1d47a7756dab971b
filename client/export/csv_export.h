// Tidy tables for spreadsheets, pandas and R: one observation a row, and with each what tells the
// trials apart, so that no table needs another.
#ifndef LENGTHWISE_CLIENT_EXPORT_CSV_EXPORT_H_
#define LENGTHWISE_CLIENT_EXPORT_CSV_EXPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/export/exporter.h"
#include "client/rendering/records.h"

namespace lengthwise::client {

// A column of a table and what it means.
struct ExportColumn {
  std::string name;
  std::string meaning;
};

// The first columns of every table: the trial and its point of the grid.
const std::vector<ExportColumn>& TrialKeyColumns();
std::vector<Value> TrialKey(const v1::Trial& trial);

// One row a trial: state, scores, times. The key columns are left out.
const std::vector<ExportColumn>& TrialColumns();
std::vector<Value> TrialRow(const v1::Trial& trial);

class CsvExporter final : public Exporter {
 public:
  using Exporter::Exporter;
  absl::Status Begin() override;
  absl::Status AddTrial(const v1::Trial& trial) override;
  absl::Status Finish() override;

 private:
  absl::StatusOr<std::unique_ptr<OutputFile>> OpenTable(const std::string& name,
                                                        const std::vector<ExportColumn>& columns);

  std::unique_ptr<OutputFile> trials_;
  std::unique_ptr<OutputFile> losses_;
  std::unique_ptr<OutputFile> accuracies_;
  // Of accuracies_, the last ones named by LengthAccuracies.metrics: those from `first_metric_` on.
  std::vector<ExportColumn> accuracy_columns_;
  size_t first_metric_ = 0;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_CSV_EXPORT_H_
