#include "client/display/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lengthwise::client {
namespace {

std::string Pad(const std::string& text, int width, Table::Align align) {
  return align == Table::Align::kLeft ? PadRight(text, width) : PadLeft(text, width);
}

// Returns the text before a column: nothing, two spaces or a vertical rule.
const char* Gap(size_t index, const Table::Column& column) {
  if (index == 0) return "";
  return column.rule_before ? " │ " : "  ";
}

}  // namespace

std::vector<int> Table::Widths(int width, int& total) const {
  std::vector<int> widths;
  total = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int widest = DisplayWidth(columns_[c].header);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[c].text));
    for (const Group& group : groups_) {
      if (group.first == c && group.last == c)
        widest = std::max(widest, DisplayWidth(group.header));
    }
    widths.push_back(widest);
    total += widest + DisplayWidth(Gap(c, columns_[c]));
  }
  for (; width > 0 && total > width; --total) {
    int widest = -1;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const int least = columns_[c].shrinks_to;
      if (least == 0 || widths[c] <= least) continue;
      if (widest < 0 || widths[c] > widths[widest]) widest = static_cast<int>(c);
    }
    if (widest < 0) break;
    --widths[widest];
  }
  // The name of a group may be wider than its columns. It is cut only if there is no room.
  for (const Group& group : groups_) {
    int lacking = DisplayWidth(group.header) - widths[group.first];
    for (size_t c = group.first + 1; c <= group.last; ++c) {
      lacking -= widths[c] + DisplayWidth(Gap(c, columns_[c]));
    }
    if (lacking <= 0 || (width > 0 && total + lacking > width)) continue;
    widths[group.last] += lacking;
    total += lacking;
  }
  return widths;
}

Table Table::Without(std::ptrdiff_t column) const {
  Table smaller = *this;
  smaller.columns_.erase(smaller.columns_.begin() + column);
  for (auto& row : smaller.rows_) row.erase(row.begin() + column);
  return smaller;
}

std::string Table::Render(int width, const Palette& palette) const {
  int total = 0;
  const std::vector<int> widths = Widths(width, total);
  const auto dispensable = std::find_if(columns_.rbegin(), columns_.rend(),
                                        [](const Column& column) { return column.may_go; });
  if (width > 0 && total > width && dispensable != columns_.rend() && groups_.empty()) {
    return Without(columns_.rend() - dispensable - 1).Render(width, palette);
  }
  std::string text;

  if (!groups_.empty()) {
    std::string line;
    for (size_t c = 0; c < columns_.size();) {
      line += Gap(c, columns_[c]);
      const auto group = std::find_if(groups_.begin(), groups_.end(),
                                      [&](const Group& candidate) { return candidate.first == c; });
      if (group == groups_.end()) {
        line += std::string(widths[c], ' ');
        ++c;
        continue;
      }
      int span = widths[c];
      for (size_t i = c + 1; i <= group->last; ++i) {
        span += widths[i] + DisplayWidth(Gap(i, columns_[i]));
      }
      line += palette(Paint::kDim, PadRight(Truncate(group->header, span), span));
      c = group->last + 1;
    }
    AppendLine(text, line);
  }

  std::string header;
  std::string rule;
  for (size_t c = 0; c < columns_.size(); ++c) {
    absl::StrAppend(&header, Gap(c, columns_[c]),
                    palette(Paint::kBold, Pad(Truncate(columns_[c].header, widths[c]), widths[c],
                                              columns_[c].align)));
    if (c > 0) rule += columns_[c].rule_before ? "─┼─" : "──";
    rule += Repeat("─", widths[c]);
  }
  AppendLine(text, header);
  AppendLine(text, palette(Paint::kDim, rule));

  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = Truncate(row[c].text, widths[c]);
      // Colours only the text, so that trailing spaces can be cut.
      const std::string padded = Pad(cell, widths[c], columns_[c].align);
      const size_t at = columns_[c].align == Align::kLeft ? 0 : padded.size() - cell.size();
      absl::StrAppend(&line, Gap(c, columns_[c]), padded.substr(0, at), palette(row[c].paint, cell),
                      padded.substr(at + cell.size()));
    }
    AppendLine(text, line);
  }
  return text;
}

}  // namespace lengthwise::client
