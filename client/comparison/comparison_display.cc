#include "client/comparison/comparison_display.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/comparison/comparison_remarks.h"
#include "client/rendering/numbers.h"
#include "client/rendering/table.h"

namespace lengthwise::client {
namespace {

using Indices = std::vector<size_t>;

Indices RowsShown(const ComparisonDocument& document) {
  Indices rows;
  for (size_t row = 0; row < document.comparison.table.rows.size(); ++row) {
    if (document.whole_table || document.comparison.RowWasRun(row)) rows.push_back(row);
  }
  return rows;
}

Indices ColumnsShown(const ComparisonDocument& document) {
  Indices columns;
  for (size_t column = 0; column < document.comparison.table.columns.size(); ++column) {
    if (document.whole_table || document.comparison.ColumnWasRun(column)) columns.push_back(column);
  }
  return columns;
}

// A value or a published one, with its deviation where it has one.
template <typename Value>
std::string FormatValue(const std::optional<Value>& value, Quantity quantity) {
  if (!value.has_value()) return "";
  std::string text = FormatQuantity(quantity, value->value);
  if (value->deviation.has_value()) {
    absl::StrAppend(&text, " ± ", FormatQuantity(quantity, *value->deviation));
  }
  return text;
}

// Losses, of many sizes, are compared by their ratio.
absl::string_view DifferenceName(Quantity quantity) {
  return quantity == Quantity::kLoss ? "ratio" : "Δ";
}

std::string FormatDifference(const ComparisonCell& cell, Quantity quantity) {
  if (quantity == Quantity::kLoss) {
    const std::optional<double> ratio = cell.Ratio();
    return ratio.has_value() ? absl::StrFormat("%.2g", *ratio) : "";
  }
  const std::optional<double> difference = cell.Difference(quantity);
  if (!difference.has_value()) return "";
  return absl::StrCat(*difference < 0 ? "−" : "+", FormatQuantity(quantity, std::abs(*difference)));
}

std::string TaskTitle(const PublishedRow& row) {
  return absl::StrCat(row.label, row.permutation_invariant ? " †" : "");
}

// Whether the tasks shown have levels of the Chomsky hierarchy.
bool HasLevels(const PublishedTable& table, const Indices& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&table](size_t row) { return !table.rows[row].level.empty(); });
}

// The columns that say what a row is: the level, where there is one, and the task.
std::vector<Table::Column> RowColumns(const PublishedTable& table, const Indices& rows) {
  std::vector<Table::Column> heads;
  if (HasLevels(table, rows)) heads.push_back({.header = "level"});
  heads.push_back({.header = "task", .shrinks_to = 12});
  return heads;
}

// The level only where it differs from the row above.
std::string LevelTitle(const PublishedTable& table, const Indices& rows, size_t i) {
  return i > 0 && table.rows[rows[i]].level == table.rows[rows[i - 1]].level
             ? ""
             : table.rows[rows[i]].level;
}

std::vector<Table::Cell> RowCells(const PublishedTable& table, const Indices& rows, size_t i) {
  std::vector<Table::Cell> cells;
  if (HasLevels(table, rows)) cells.emplace_back(LevelTitle(table, rows, i));
  cells.emplace_back(TaskTitle(table.rows[rows[i]]));
  return cells;
}

void AddLevelRule(const PublishedTable& table, const Indices& rows, size_t i, Table& rendered) {
  if (i > 0 && !LevelTitle(table, rows, i).empty()) rendered.AddRule();
}

// Three columns an encoding. A star marks the best where there is no bold.
Table SideBySide(const Comparison& comparison, const Indices& rows, const Indices& columns,
                 bool stars) {
  const PublishedTable& table = comparison.table;
  std::vector<Table::Column> heads = RowColumns(table, rows);
  std::vector<Table::Group> groups;
  for (const size_t column : columns) {
    groups.push_back({table.columns[column].label, heads.size(), heads.size() + 2});
    heads.push_back({.header = "here", .align = Table::Align::kRight, .rule_before = true});
    heads.push_back({.header = "paper", .align = Table::Align::kRight});
    heads.push_back(
        {.header = std::string(DifferenceName(table.quantity)), .align = Table::Align::kRight});
  }
  Table rendered(std::move(heads));
  for (Table::Group& group : groups) rendered.AddGroup(std::move(group));
  for (size_t i = 0; i < rows.size(); ++i) {
    AddLevelRule(table, rows, i, rendered);
    std::vector<Table::Cell> cells = RowCells(table, rows, i);
    for (const size_t column : columns) {
      const ComparisonCell& cell = comparison.cells[rows[i]][column];
      // Numbers stay below each other where one of them has a star.
      const auto mark = [stars](std::string text, bool best) {
        return stars && !text.empty() ? absl::StrCat(text, best ? "*" : " ") : text;
      };
      cells.emplace_back(mark(FormatValue(cell.measured, table.quantity), cell.best_measured),
                         cell.best_measured ? Paint::kGreen : Paint::kBold, cell.best_measured);
      cells.emplace_back(mark(FormatValue(cell.published, table.quantity), cell.best_published),
                         Paint::kPlain, cell.best_published);
      cells.emplace_back(FormatDifference(cell, table.quantity), Paint::kDim);
    }
    rendered.AddRow(std::move(cells));
  }
  return rendered;
}

int WidthOf(const std::string& text) {
  int width = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) width = std::max(width, DisplayWidth(line));
  return width;
}

// Columns cut into the fewest blocks of nearly equal size of which all fit.
std::vector<Indices> Blocks(const Comparison& comparison, const Indices& rows,
                            const Indices& columns, int width) {
  for (size_t count = 1;; ++count) {
    std::vector<Indices> blocks;
    bool fits = true;
    for (size_t b = 0; b < count; ++b) {
      blocks.emplace_back(columns.begin() + columns.size() * b / count,
                          columns.begin() + columns.size() * (b + 1) / count);
      const std::string text =
          SideBySide(comparison, rows, blocks.back(), true).Render(width, Palette(false));
      fits = fits && WidthOf(text) <= width;
    }
    if (fits || count >= columns.size()) return blocks;
  }
}

Table OneCellEach(const Comparison& comparison, const Indices& rows, const Indices& columns) {
  const PublishedTable& table = comparison.table;
  std::vector<Table::Column> heads = RowColumns(table, rows);
  for (const size_t column : columns) {
    heads.push_back({.header = table.columns[column].label, .align = Table::Align::kRight});
  }
  Table rendered(std::move(heads));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<Table::Cell> cells = RowCells(table, rows, i);
    for (const size_t column : columns) {
      const ComparisonCell& cell = comparison.cells[rows[i]][column];
      std::vector<std::string> parts = {FormatValue(cell.measured, table.quantity),
                                        FormatValue(cell.published, table.quantity),
                                        FormatDifference(cell, table.quantity)};
      if (!cell.measured.has_value()) {
        cells.emplace_back(cell.published ? absl::StrCat("  / ", parts[1], " /  ") : "");
      } else {
        cells.emplace_back(absl::StrJoin(parts, " / "), Paint::kPlain, cell.best_measured);
      }
    }
    rendered.AddRow(std::move(cells));
  }
  return rendered;
}

}  // namespace

void WriteTerminal(const ComparisonDocument& document, int width, const Palette& palette,
                   std::ostream& out) {
  const Comparison& comparison = document.comparison;
  out << palette(Paint::kBold, Heading(document)) << "\n";
  const Indices rows = RowsShown(document);
  const Indices columns = ColumnsShown(document);
  if (!rows.empty() && !columns.empty()) {
    for (const Indices& block : Blocks(comparison, rows, columns, width)) {
      out << "\n" << SideBySide(comparison, rows, block, true).Render(width, palette);
    }
  }
  out << "\n";
  for (const std::string& remark : Remarks(document, "*")) out << Wrap(remark, width, 2) << "\n";
}

void WriteMarkdown(const ComparisonDocument& document, std::ostream& out) {
  out << "**" << EscapeMarkdown(Heading(document)) << "** Each cell: here / paper / "
      << (document.comparison.table.quantity == Quantity::kLoss ? "ratio" : "difference") << ".\n\n"
      << OneCellEach(document.comparison, RowsShown(document), ColumnsShown(document))
             .RenderMarkdown()
      << "\n";
  for (const std::string& remark : Remarks(document, "bold")) {
    out << "- " << EscapeMarkdown(remark) << "\n";
  }
}

void WriteHtml(const ComparisonDocument& document, std::ostream& out) {
  out << "<h3>" << EscapeHtml(Heading(document)) << "</h3>\n<div class=\"wide\">"
      << SideBySide(document.comparison, RowsShown(document), ColumnsShown(document), false)
             .RenderHtml()
      << "</div>\n<ul class=\"remarks\">\n";
  for (const std::string& remark : Remarks(document, "bold")) {
    out << "<li>" << EscapeHtml(remark) << "</li>\n";
  }
  out << "</ul>\n";
}

void WriteLatex(const ComparisonDocument& document, std::ostream& out) {
  out << "\\begin{table}\n\\centering\n"
      << SideBySide(document.comparison, RowsShown(document), ColumnsShown(document), false)
             .RenderLatex()
      << "\\caption{" << EscapeLatex(Heading(document));
  for (const std::string& remark : Remarks(document, "bold")) out << " " << EscapeLatex(remark);
  out << "}\n\\end{table}\n";
}

}  // namespace lengthwise::client
