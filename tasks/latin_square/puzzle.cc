#include "tasks/latin_square/puzzle.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lengthwise::tasks::latin_square {

absl::StatusOr<Puzzle> ParsePuzzle(absl::string_view text) {
  const auto problem = [text](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text.substr(0, 40), "\" is not a puzzle: ", what,
        "; a puzzle is 16 digits, row by row: 0 a blank, 1 to 4 a symbol, 5 the target"));
  };
  if (text.size() != kCells) return problem(absl::StrCat("it has ", text.size(), " characters"));
  Puzzle puzzle = {};
  for (size_t cell = 0; cell < kCells; ++cell) {
    if (text[cell] < '0' || text[cell] > '5') {
      return problem(absl::StrCat("character ", cell + 1, " is not a digit from 0 to 5"));
    }
    puzzle[cell] = static_cast<uint8_t>(text[cell] - '0');
  }
  if (const auto targets = std::count(puzzle.begin(), puzzle.end(), kTarget); targets != 1) {
    return problem(absl::StrCat("it has ", targets, " targets"));
  }
  for (size_t cell = 0; cell < kCells; ++cell) {
    if (puzzle[cell] == kBlank) continue;
    for (size_t other = 0; other < cell; ++other) {
      if (puzzle[other] == puzzle[cell] && (Cell(other) & (RowOf(cell) | ColumnOf(cell))) != 0) {
        return problem(absl::StrCat("symbol ", puzzle[cell], " occurs twice in a row or column"));
      }
    }
  }
  return puzzle;
}

std::string FormatPuzzle(const Puzzle& puzzle) { return absl::StrJoin(puzzle, ""); }

size_t TargetCell(const Puzzle& puzzle) {
  return static_cast<size_t>(std::find(puzzle.begin(), puzzle.end(), kTarget) - puzzle.begin());
}

Features::Features(const Puzzle& puzzle) {
  for (size_t cell = 0; cell < kCells; ++cell) {
    if (puzzle[cell] == kBlank) continue;
    values_ |= uint64_t{puzzle[cell]} << (4 * cell);
    filled_ |= uint64_t{1} << (4 * cell);
    ++size_;
  }
}

}  // namespace lengthwise::tasks::latin_square
