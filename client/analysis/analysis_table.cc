#include "client/analysis/analysis_table.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/rendering/numbers.h"
#include "statistics/summary.h"

namespace lengthwise::client {
namespace {

constexpr char kNone[] = "–";

std::string Number(double value, int decimals) {
  return std::isnan(value) ? kNone : absl::StrFormat("%.*f", decimals, value);
}

}  // namespace

Table AnalysisTable::ToTable() const {
  bool tasks = false, networks = false, rates = false;
  std::vector<const TrialSet*> sets;
  for (const auto& [set, cells] : rows_) {
    sets.push_back(set);
    tasks |= set->task != rows_[0].first->task;
    networks |= set->network != rows_[0].first->network;
    rates |= set->learning_rate != rows_[0].first->learning_rate;
  }
  const bool experiments = ShareLabels(sets);
  std::vector<Table::Column> columns;
  if (experiments) columns.push_back({.header = "experiment", .shrinks_to = 12});
  if (tasks) columns.push_back({.header = "task", .shrinks_to = 8});
  if (networks) columns.push_back({.header = "network", .shrinks_to = 8});
  columns.push_back({.header = "encoding", .shrinks_to = 12});
  if (rates) columns.push_back({.header = "rate", .align = Table::Align::kRight});
  for (const Column& column : columns_) {
    if (column.header.empty()) continue;
    columns.push_back({.header = column.header,
                       .align = Table::Align::kRight,
                       .rule_before = column.rule_before});
  }
  Table table(std::move(columns));
  for (const auto& [set, cells] : rows_) {
    std::vector<Table::Cell> row;
    if (experiments) row.emplace_back(set->experiment);
    if (tasks) row.emplace_back(set->task);
    if (networks) row.emplace_back(set->network);
    row.emplace_back(set->encoding);
    if (rates) row.emplace_back(FormatExact(set->learning_rate));
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].header.empty()) row.emplace_back(cells[i].text);
    }
    table.AddRow(std::move(row));
  }
  return table;
}

Records AnalysisTable::ToRecords() const {
  Records records{.columns = {"experiment", "task", "network", "encoding", "learning_rate"}};
  for (const Column& column : columns_) {
    if (!column.name.empty()) records.columns.push_back(column.name);
  }
  for (const auto& [set, cells] : records_.empty() ? rows_ : records_) {
    std::vector<Value> row = {set->experiment, set->task, set->network, set->encoding,
                              set->learning_rate};
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].name.empty()) row.push_back(cells[i].value);
    }
    records.rows.push_back(std::move(row));
  }
  return records;
}

AnalysisTable::Cell NumberCell(double value, int decimals) {
  return {value, Number(value, decimals)};
}

AnalysisTable::Cell CountCell(int64_t value) { return {value, FormatCount(value)}; }

std::pair<AnalysisTable::Cell, AnalysisTable::Cell> MeanCells(absl::Span<const double> values,
                                                              int decimals) {
  AnalysisTable::Cell mean = NumberCell(statistics::Mean(values), decimals);
  const AnalysisTable::Cell deviation =
      NumberCell(statistics::SampleStandardDeviation(values), decimals);
  if (values.size() > 1) absl::StrAppend(&mean.text, " ± ", deviation.text);
  return {std::move(mean), deviation};
}

std::pair<AnalysisTable::Cell, AnalysisTable::Cell> AccuracyCells(absl::Span<const double> values) {
  const double mean = statistics::Mean(values);
  const double deviation = statistics::SampleStandardDeviation(values);
  AnalysisTable::Cell cell{mean, FormatPercent(mean)};
  if (values.size() > 1) absl::StrAppend(&cell.text, " ± ", FormatPercent(deviation));
  return {std::move(cell), NumberCell(deviation, 3)};
}

AnalysisTable::Cell ProbabilityCell(double value) {
  if (value < 0.001) return {value, "< 0.001"};
  return NumberCell(value, value < 0.1 ? 3 : 2);
}

}  // namespace lengthwise::client
