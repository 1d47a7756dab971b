// A 4 x 4 Latin square puzzle: some cells are blank, and one of them is the target. Its solution by
// rules, and files of puzzles.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

struct Deduction {
  // 1, 2 or 3. The puzzle's condition: "one-, two- and three-vector" (binary, ternary, quaternary).
  int vectors = 0;
  uint8_t symbol = 0;

  bool operator==(const Deduction&) const = default;
};

// Applies the first rule that settles the target: its row holds the three other symbols, or its
// column, or both together; the row has one clue or none, and the columns of its two or three
// blanks hold the symbol; the same with rows and columns exchanged. Nullopt if no rule does,
// because the symbol is ambiguous or needs a longer argument, or if the symbol already occurs in
// the target's row or column. As in the published classifier of the Latin square task, no rule
// covers a row with two clues and one other blank.
std::optional<Deduction> Deduce(const Puzzle& puzzle);

struct SolvedPuzzle {
  Puzzle puzzle = {};
  Deduction deduction;

  bool operator==(const SolvedPuzzle&) const = default;
};

// Parses JSON in either of two layouts; ignores other keys.
//   {"puzzles": [{"puzzle": "0040405210200030", "solution": 1, "vectors": 1}, ...]}
//                                                         only "puzzle" is required
//   {"binary": [["2000500234001000", 4], ...], "ternary": [...], "quaternary": [...]}
// Solutions and conditions are deduced. INVALID_ARGUMENT, with the entry's location, for an unknown
// layout, an invalid or duplicate puzzle, a target that no rule settles, and a solution or
// condition that contradicts the deduction. `name` is the file's name in messages.
absl::StatusOr<std::vector<SolvedPuzzle>> ParsePuzzleFile(absl::string_view text,
                                                          absl::string_view name);

// ParsePuzzleFile for a file. Returns the error of reading it; FAILED_PRECONDITION if it is
// not a regular file or exceeds 64 MiB.
absl::StatusOr<std::vector<SolvedPuzzle>> ReadPuzzleFile(const std::string& path);

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_H_
