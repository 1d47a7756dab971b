// Tables of text that fit the terminal.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TABLE_H_
#define LENGTHWISE_CLIENT_DISPLAY_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/display/terminal.h"

namespace lengthwise::client {

// Columns are two spaces apart, with a bold header, a rule below it and optional vertical rules:
//
//   encoding             1–5  6–10   mean │   25    60   mean
//   ──────────────────────────────────────┼──────────────────
//   sin_cos             98.1  95.0   96.5 │ 17.0   5.0   11.1
class Table {
 public:
  enum class Align { kLeft, kRight };

  struct Column {
    std::string header;
    Align align = Align::kLeft;
    // Draws a vertical rule to its left.
    bool rule_before = false;
    // Smallest width in terminal columns if the table does not fit. 0: the column never shrinks.
    int shrinks_to = 0;
    // Left out if the table does not fit otherwise, the last such column first.
    bool may_go = false;
  };

  struct Cell {
    Cell(std::string text, Paint paint = Paint::kPlain) : text(std::move(text)), paint(paint) {}
    Cell(const char* text) : text(text) {}
    std::string text;
    Paint paint = Paint::kPlain;
  };

  // A heading above the columns `first` to `last`, inclusive.
  struct Group {
    std::string header;
    size_t first = 0;
    size_t last = 0;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void AddGroup(Group group) { groups_.push_back(std::move(group)); }

  // One cell per column.
  void AddRow(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

  // Returns the table without a column, by its index. For tables without groups.
  Table Without(std::ptrdiff_t column) const;

  // Returns lines with line ends and without trailing spaces. Columns that may shrink do so until
  // the table is at most `width` columns wide, and columns that may go are left out; a table that
  // still does not fit is wider. A `width` of 0 means no limit.
  std::string Render(int width, const Palette& palette) const;

 private:
  std::vector<int> Widths(int width, int& total) const;

  std::vector<Column> columns_;
  std::vector<Group> groups_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TABLE_H_
