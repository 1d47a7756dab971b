// A 4 x 4 Latin square puzzle: some cells are blank, and one of them is the target.
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

// Values of a cell: blank, one of the symbols 1 to 4, or the target.
inline constexpr uint8_t kBlank = 0;
inline constexpr uint8_t kTarget = 5;
inline constexpr int32_t kCellValues = 6;

// Cells row by row. A valid puzzle has one target and no symbol twice in a row or column.
using Puzzle = std::array<uint8_t, kCells>;

// Parses and formats sixteen digits, row by row: "5241010024101324". INVALID_ARGUMENT if `text` is
// not a valid puzzle.
absl::StatusOr<Puzzle> ParsePuzzle(absl::string_view text);
std::string FormatPuzzle(const Puzzle& puzzle);

// Index of the cell that holds kTarget; kCells if none does.
size_t TargetCell(const Puzzle& puzzle);
size_t NumberOfClues(const Puzzle& puzzle);

// Sets of cells: cell i is bit i.
using CellSet = uint16_t;
constexpr CellSet Cell(size_t cell) { return static_cast<CellSet>(1U << cell); }
constexpr CellSet RowOf(size_t cell) {
  return static_cast<CellSet>(0xFU << (cell / kSide * kSide));
}
constexpr CellSet ColumnOf(size_t cell) { return static_cast<CellSet>(0x1111U << (cell % kSide)); }

// A puzzle's one-hot features as a bit set, for fast comparisons: five channels of 16 cells, one
// for each symbol and one for the target.
class Features {
 public:
  explicit Features(const Puzzle& puzzle);

  // Jaccard dissimilarity, 1 - |u and v| / |u or v|, over the 80 features, including the target's.
  double DissimilarityTo(const Features& other) const {
    // A cell filled in both puzzles contributes one shared feature if the values are equal, and two
    // features otherwise.
    const uint64_t different = values_ ^ other.values_;
    uint64_t same = ~(different | different >> 1 | different >> 2 | different >> 3) & filled_;
    constexpr uint64_t kBytes = 0x0101010101010101;
    same = (same & kBytes) + (same >> 4 & kBytes);
    const auto both = static_cast<int>(same * kBytes >> 56);
    return 1.0 - static_cast<double>(both) / static_cast<double>(size_ + other.size_ - both);
  }

 private:
  uint64_t values_ = 0;  // four bits for each cell
  uint64_t filled_ = 0;  // the lowest bit of each cell that is not blank
  int size_ = 0;         // number of cells that are not blank
};

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_H_
