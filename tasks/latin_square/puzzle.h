// A 4 x 4 Latin square with blanks, one of which is asked for.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::tasks::latin_square {

inline constexpr size_t kSide = 4;
inline constexpr size_t kCells = kSide * kSide;

// What a cell holds: nothing, one of the symbols 1 to 4, or the question.
inline constexpr uint8_t kBlank = 0;
inline constexpr uint8_t kTarget = 5;
inline constexpr int32_t kCellValues = 6;

// Row by row. A puzzle has one target, and no symbol twice in a row or column.
using Puzzle = std::array<uint8_t, kCells>;

// Sixteen digits, row by row: "5241010024101324". INVALID_ARGUMENT where `text` is not a puzzle.
absl::StatusOr<Puzzle> ParsePuzzle(absl::string_view text);
std::string FormatPuzzle(const Puzzle& puzzle);

// Place of the cell that holds kTarget; kCells where none does.
size_t TargetCell(const Puzzle& puzzle);
size_t NumberOfClues(const Puzzle& puzzle);

// Sets of cells: cell i is bit i.
using CellSet = uint16_t;
constexpr CellSet Cell(size_t cell) { return static_cast<CellSet>(1U << cell); }
constexpr CellSet RowOf(size_t cell) {
  return static_cast<CellSet>(0xFU << (cell / kSide * kSide));
}
constexpr CellSet ColumnOf(size_t cell) { return static_cast<CellSet>(0x1111U << (cell % kSide)); }

// A puzzle's features as a set, for fast comparisons: five channels of 16 cells, one channel for
// each symbol and one for the target.
class Features {
 public:
  explicit Features(const Puzzle& puzzle);

  // 1 - |u and v| / |u or v| over the 80 features, the target's among them.
  double DissimilarityTo(const Features& other) const;

 private:
  uint64_t symbols_ = 0;  // cell c with symbol s: bit 16 (s - 1) + c
  CellSet target_ = 0;
};

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_H_
