// Tables of text that fit the terminal.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TABLE_H_
#define LENGTHWISE_CLIENT_DISPLAY_TABLE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/display/terminal_text.h"

namespace lengthwise::client {

// Columns two spaces apart, a bold header, a rule below it, and upright rules where asked for:
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
    // An upright rule to its left.
    bool rule_before = false;
    // May be cut down to this many columns when the table does not fit; 0: never.
    int shrinks_to = 0;
  };

  struct Cell {
    Cell(std::string text, Paint paint = Paint::kPlain, bool best = false)
        : text(std::move(text)), paint(paint), best(best) {}
    Cell(const char* text) : text(text) {}
    std::string text;
    Paint paint = Paint::kPlain;
    // Set in bold in a document.
    bool best = false;
  };

  // A heading above some columns, `first` to `last`, both included.
  struct Group {
    std::string header;
    size_t first = 0;
    size_t last = 0;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void AddGroup(Group group) { groups_.push_back(std::move(group)); }

  // As many cells as there are columns.
  void AddRow(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

  // A rule between the row before and the one after.
  void AddRule() { rules_.insert(rows_.size()); }

  // Lines with line ends and without spaces at their ends. Columns that may shrink do so until the
  // table is at most `width` wide; what still does not fit is left to the terminal. 0 stands for
  // unlimited.
  std::string Render(int width, const Palette& palette) const;

  // A table of GitHub's Markdown. A group's name stands in the heads of its columns; rules between
  // rows are left out.
  std::string RenderMarkdown() const;

  // A tabular environment for LaTeX's booktabs package.
  std::string RenderLatex() const;

 private:
  std::vector<int> Widths(int width) const;

  std::vector<Column> columns_;
  std::vector<Group> groups_;
  std::vector<std::vector<Cell>> rows_;
  std::set<size_t> rules_;  // in front of the row of this index
};

// Text as Markdown and LaTeX show it unchanged. LaTeX gets commands for the few symbols beyond
// ASCII that tables here use.
std::string EscapeMarkdown(absl::string_view text);
std::string EscapeLatex(absl::string_view text);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TABLE_H_
