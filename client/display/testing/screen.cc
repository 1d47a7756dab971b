#include "client/display/testing/screen.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

namespace lengthwise::client {
namespace {

size_t CharacterBytes(unsigned char first) {
  return first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
}

}  // namespace

Screen::Screen(const TerminalSize& size)
    : size_(size),
      rows_(static_cast<size_t>(size.height),
            std::vector<std::string>(static_cast<size_t>(size.width), " ")) {}

void Screen::NewLine() {
  if (row_ + 1 < rows_.size()) {
    ++row_;
    return;
  }
  rows_.erase(rows_.begin());
  rows_.emplace_back(static_cast<size_t>(size_.width), " ");
}

void Screen::Sequence(absl::string_view parameters, char command) {
  int number = 1;
  if (!parameters.empty() && !absl::SimpleAtoi(parameters, &number)) number = 0;
  if (command == 'A') {
    row_ -= std::min(row_, static_cast<size_t>(number));
  } else if (command == 'K' || command == 'J') {
    std::fill(rows_[row_].begin() + static_cast<std::ptrdiff_t>(column_), rows_[row_].end(), " ");
    if (command == 'K') return;
    ++clears_;
    for (size_t row = row_ + 1; row < rows_.size(); ++row) {
      std::fill(rows_[row].begin(), rows_[row].end(), " ");
    }
  } else if (parameters == "?25") {
    cursor_is_shown_ = command == 'h';
  }
}

void Screen::Write(absl::string_view text) {
  while (!text.empty()) {
    if (text[0] == '\x1b' && text.size() > 1 && text[1] == '[') {
      const size_t end = text.find_first_of("ABCDHJKhlm", 2);
      if (end == absl::string_view::npos) return;
      Sequence(text.substr(2, end - 2), text[end]);
      text.remove_prefix(end + 1);
    } else if (text[0] == '\n') {
      // The system's terminal driver adds a carriage return.
      column_ = 0;
      NewLine();
      text.remove_prefix(1);
    } else if (text[0] == '\r') {
      column_ = 0;
      text.remove_prefix(1);
    } else {
      const size_t bytes =
          std::min(CharacterBytes(static_cast<unsigned char>(text[0])), text.size());
      if (column_ == static_cast<size_t>(size_.width)) {
        column_ = 0;
        NewLine();
      }
      rows_[row_][column_++] = std::string(text.substr(0, bytes));
      text.remove_prefix(bytes);
    }
  }
}

void Screen::Resize(const TerminalSize& size) {
  size_ = size;
  const auto height = static_cast<size_t>(size.height);
  for (auto& row : rows_) row.resize(static_cast<size_t>(size.width), " ");
  // Removes rows above the cursor first, as many as needed.
  while (rows_.size() > height && row_ + 1 > height) {
    rows_.erase(rows_.begin());
    --row_;
  }
  rows_.resize(height, std::vector<std::string>(static_cast<size_t>(size.width), " "));
  column_ = std::min(column_, static_cast<size_t>(size.width));
}

std::vector<std::string> Screen::Lines() const {
  std::vector<std::string> lines;
  for (const auto& row : rows_) {
    std::string line = absl::StrJoin(row, "");
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace lengthwise::client
