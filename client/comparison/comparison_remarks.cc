#include "client/comparison/comparison_remarks.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/rendering/numbers.h"

namespace lengthwise::client {
namespace {

std::string Count(int count, absl::string_view singular) {
  return absl::StrCat(FormatCount(count), " ", singular, count == 1 ? "" : "s");
}

std::string NotRun(const ComparisonDocument& document) {
  const Comparison& comparison = document.comparison;
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  for (size_t row = 0; row < comparison.table.rows.size(); ++row) {
    if (!comparison.RowWasRun(row)) rows.push_back(comparison.table.rows[row].label);
  }
  for (size_t column = 0; column < comparison.table.columns.size(); ++column) {
    if (!comparison.ColumnWasRun(column)) columns.push_back(comparison.table.columns[column].label);
  }
  std::string text =
      absl::StrCat(comparison.cells_run, " of ", comparison.cell_count, " cells run");
  if (!rows.empty()) {
    absl::StrAppend(&text, "; rows not run: ", absl::StrJoin(rows, ", "));
  }
  if (!columns.empty()) {
    absl::StrAppend(&text, "; columns not run: ", absl::StrJoin(columns, ", "));
  }
  if (!document.whole_table && comparison.cells_run > 0 && !(rows.empty() && columns.empty())) {
    absl::StrAppend(&text, " (--whole_table shows them, empty)");
  }
  return text + ".";
}

// "1 trial", "1 to 30 trials".
std::string TrialsPerCell(const Comparison& comparison) {
  int least = 0;
  int most = 0;
  for (const auto& row : comparison.cells) {
    for (const ComparisonCell& cell : row) {
      if (!cell.measured.has_value()) continue;
      least = most == 0 ? cell.measured->trials : std::min(least, cell.measured->trials);
      most = std::max(most, cell.measured->trials);
    }
  }
  return least == most ? Count(most, "trial") : absl::StrCat(least, " to ", Count(most, "trial"));
}

std::string StatisticInWords(Statistic statistic) {
  switch (statistic) {
    case Statistic::kMaximum:
      return "the best trial";
    case Statistic::kMeanAtBestRate:
      return "mean and sample standard deviation over the seeds of the best learning rate";
    case Statistic::kMeanOfAll:
      return "mean and sample standard deviation over all trials";
    case Statistic::kMedian:
      return "the median over the seeds";
  }
  return "";
}

// "100", "10, 50": of a table with accuracies at its columns' lengths.
std::string Lengths(const PublishedTable& table) {
  std::set<int32_t> lengths;
  for (const PublishedColumn& column : table.columns) {
    if (column.length > 0) lengths.insert(column.length);
  }
  return absl::StrJoin(lengths, ", ");
}

std::string WhatIsMeasured(const Comparison& comparison) {
  std::string value = "a trial's mean accuracy over the lengths not seen in training";
  if (comparison.table.HasLengthAccuracies()) {
    value = absl::StrCat("a trial's accuracy at length ", Lengths(comparison.table));
  }
  if (comparison.table.quantity == Quantity::kLoss) {
    value = "a trial's mean squared error at each scale";
  }
  for (const PublishedRow& row : comparison.table.rows) {
    if (row.quantity != Quantity::kTrainingAccuracy) continue;
    absl::StrAppend(&value, ", and its accuracy on examples of its own data set");
    break;
  }
  if (comparison.table.quantity == Quantity::kTrainingHours) {
    value = absl::StrCat("hours of a trial's training, scaled from ", FormatCount(comparison.steps),
                         " to the paper's ", FormatCount(comparison.published_steps),
                         " steps (trials of a pack count the whole pack's time each, and workers "
                         "that share a machine slow each other)");
  }
  std::vector<std::string> statistics;
  for (const PublishedColumn& column : comparison.table.columns) {
    std::string words = StatisticInWords(column.statistic);
    if (std::find(statistics.begin(), statistics.end(), words) == statistics.end()) {
      statistics.push_back(std::move(words));
    }
  }
  return absl::StrCat("Here: ", value, "; ", absl::StrJoin(statistics, ", or "), "; ",
                      TrialsPerCell(comparison),
                      " in each cell. Paper: ", comparison.table.aggregation, ".");
}

std::string WhatIsLeftOut(const Comparison& comparison) {
  std::vector<std::string> reasons;
  if (comparison.unfinished > 0) {
    reasons.push_back(absl::StrCat(Count(comparison.unfinished, "trial"), " without a result"));
  }
  if (comparison.without_value > 0) {
    reasons.push_back(absl::StrCat(
        Count(comparison.without_value, "trial"),
        comparison.table.quantity == Quantity::kTrainingHours ? " whose time is not known"
        : comparison.table.HasLengthAccuracies()              ? " not evaluated at that length"
                                                              : " evaluated on no unseen length"));
  }
  if (comparison.elsewhere > 0) {
    reasons.push_back(absl::StrCat(Count(comparison.elsewhere, "trial"),
                                   " of a task, network or encoding that the table does not have"));
  }
  return reasons.empty() ? "" : absl::StrCat("Left out: ", absl::StrJoin(reasons, ", "), ".");
}

std::string HowTheProtocolDiffers(const ComparisonDocument& document) {
  if (document.differences.empty()) {
    return absl::StrCat("Protocol: as the paper's (", document.comparison.table.protocol, ").");
  }
  std::vector<std::string> parts;
  for (const ProtocolDifference& difference : document.differences) {
    parts.push_back(absl::StrCat(difference.what, " ", difference.here,
                                 " (paper: ", difference.published, ")"));
  }
  return absl::StrCat("Not the paper's protocol: ", absl::StrJoin(parts, "; "), ".");
}

}  // namespace

std::string Heading(const ComparisonDocument& document) {
  const PublishedTable& table = document.comparison.table;
  return absl::StrCat(document.experiment, " beside ", table.table, " of ",
                      table.citation.substr(0, table.citation.find(',')),
                      table.quantity == Quantity::kTrainingHours ? ": hours of training."
                      : table.quantity == Quantity::kLoss        ? ": mean squared error by scale."
                      : table.HasLengthAccuracies()
                          ? absl::StrCat(": accuracy at length ", Lengths(table), ", per cent.")
                          : ": accuracy on unseen lengths, per cent.");
}

std::vector<std::string> Remarks(const ComparisonDocument& document, absl::string_view best_mark) {
  const Comparison& comparison = document.comparison;
  std::vector<std::string> remarks = {NotRun(document)};
  if (comparison.cells_run > 0) {
    remarks.push_back(WhatIsMeasured(comparison));
    if (comparison.table.quantity != Quantity::kLoss) {
      remarks.push_back(absl::StrCat("Best of a row: ", best_mark,
                                     ". Permutation-invariant, so solvable without positions: †."));
    }
  }
  if (std::string left_out = WhatIsLeftOut(comparison); !left_out.empty()) {
    remarks.push_back(std::move(left_out));
  }
  remarks.push_back(HowTheProtocolDiffers(document));
  for (const std::string& note : comparison.table.notes) {
    remarks.push_back(absl::StrCat("On the published table: ", note));
  }
  return remarks;
}

}  // namespace lengthwise::client
