#include "tasks/latin_square/generator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <numeric>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::tasks::latin_square {
namespace {

constexpr size_t kConditions = 3;
// The paper's dissimilarity keeps about one candidate in 500. This limit allows twenty times as
// many.
constexpr int64_t kCandidatesPerPuzzle = 10000;

CellSet With(CellSet cells, size_t cell) { return static_cast<CellSet>(cells | Cell(cell)); }
CellSet Without(CellSet cells, size_t cell) { return static_cast<CellSet>(cells & ~Cell(cell)); }

// Calls `take` with each cell of the set, in ascending order, until it returns true. Returns true
// if it did.
template <typename Take>
bool AnyOf(CellSet cells, const Take& take) {
  for (; cells != 0; cells = static_cast<CellSet>(cells & (cells - 1))) {
    if (take(static_cast<size_t>(std::countr_zero(cells)))) return true;
  }
  return false;
}

// Returns true if the row or the column of `cell` settles its symbol: no other blank there could
// hold the symbol, because the line crossing at that blank has it already. `same` are the cells
// with that symbol.
bool IsDeducible(size_t cell, CellSet same, CellSet blanks) {
  const bool elsewhere_in_column =
      AnyOf(static_cast<CellSet>(blanks & ColumnOf(cell)),
            [same](size_t blank) { return (same & RowOf(blank)) == 0; });
  if (!elsewhere_in_column) return true;
  return !AnyOf(static_cast<CellSet>(blanks & RowOf(cell)),
                [same](size_t blank) { return (same & ColumnOf(blank)) == 0; });
}

// All Latin squares with the distribution of filling cell by cell: the weight of a square is the
// product, over its cells, of one divided by the number of choices.
class SquareTable {
 public:
  SquareTable() {
    Puzzle square = {};
    std::array<uint32_t, kSide> columns = {kAll, kAll, kAll, kAll};
    Fill(0, kAll, columns, kScale, square);
  }

  uint32_t total() const { return ends_.back(); }
  const Puzzle& At(uint32_t place) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), place);
    return squares_[static_cast<size_t>(end - ends_.begin())];
  }

 private:
  static constexpr uint32_t kAll = 0b11110;  // symbol s is bit s
  // The least common multiple of the weights' denominators: 288, 864, 1152 and 3456.
  static constexpr uint32_t kScale = 3456;

  void Fill(size_t cell, uint32_t row, std::array<uint32_t, kSide>& columns, uint32_t weight,
            Puzzle& square) {
    if (cell == kCells) {
      squares_.push_back(square);
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + weight);
      return;
    }
    if (cell % kSide == 0) row = kAll;
    uint32_t& column = columns[cell % kSide];
    const uint32_t choices = row & column;
    const auto count = static_cast<uint32_t>(std::popcount(choices));
    for (uint32_t left = choices; left != 0; left &= left - 1) {
      const uint32_t choice = left & (~left + 1);
      square[cell] = static_cast<uint8_t>(std::countr_zero(choice));
      column &= ~choice;
      Fill(cell + 1, row & ~choice, columns, weight / count, square);
      column |= choice;
    }
  }

  std::vector<Puzzle> squares_;
  std::vector<uint32_t> ends_;  // cumulative weights, including each square
};

bool MayBlank(Blanking blanking, size_t cell, CellSet same, CellSet blanks) {
  if (blanking == Blanking::kPublished && cell % kSide != 0) return true;
  return IsDeducible(cell, same, blanks);
}

// Blanks cells in random order until `clues` are left or every cell was tried. Returns the blanks.
// One pass suffices: a cell that cannot be blanked now cannot be blanked later, when fewer clues
// are left.
CellSet BlankCells(Blanking blanking, size_t clues, random::Stream& stream, Puzzle& square) {
  std::array<CellSet, kCellValues> holders = {};
  for (size_t cell = 0; cell < kCells; ++cell) {
    holders[square[cell]] = With(holders[square[cell]], cell);
  }
  std::array<uint8_t, kCells> order = {};
  std::iota(order.begin(), order.end(), uint8_t{0});
  CellSet blanks = 0;
  size_t left = kCells;
  for (size_t tried = 0; tried < kCells && left > clues; ++tried) {
    std::swap(order[tried], order[tried + stream.Below(static_cast<uint32_t>(kCells - tried))]);
    const size_t cell = order[tried];
    CellSet& same = holders[square[cell]];
    if (!MayBlank(blanking, cell, same, blanks)) continue;
    same = Without(same, cell);
    blanks = With(blanks, cell);
    square[cell] = kBlank;
    --left;
  }
  return blanks;
}

bool IsApart(const Puzzle& puzzle, absl::Span<const Features> others, double dissimilarity) {
  const Features features(puzzle);
  return std::all_of(others.begin(), others.end(), [&](const Features& other) {
    return features.DissimilarityTo(other) > dissimilarity;
  });
}

}  // namespace

Puzzle DrawLatinSquare(random::Stream& stream) {
  static const auto& squares = *new SquareTable;
  return squares.At(stream.Below(squares.total()));
}

Puzzle DrawPuzzle(const PuzzleStyle& style, random::Stream& stream) {
  const auto clues = static_cast<size_t>(stream.Between(style.fewest_clues, style.most_clues));
  Puzzle puzzle = DrawLatinSquare(stream);
  CellSet blanks = BlankCells(style.blanking, clues, stream, puzzle);
  auto skip = stream.Below(static_cast<uint32_t>(std::popcount(blanks)));
  while (skip-- > 0) blanks = static_cast<CellSet>(blanks & (blanks - 1));
  puzzle[static_cast<size_t>(std::countr_zero(blanks))] = kTarget;
  return puzzle;
}

absl::StatusOr<std::vector<SolvedPuzzle>> GeneratePuzzles(const Wanted& wanted, uint64_t seed,
                                                          Part part) {
  std::array<int64_t, kConditions> missing = {};
  for (size_t condition = 0; condition < kConditions; ++condition) {
    missing[condition] =
        wanted.count / static_cast<int64_t>(kConditions) +
        (static_cast<int64_t>(condition) < wanted.count % static_cast<int64_t>(kConditions));
  }
  const std::vector<Features> others(wanted.apart_from.begin(), wanted.apart_from.end());
  const int64_t candidates = wanted.count * kCandidatesPerPuzzle;
  absl::flat_hash_set<Puzzle> seen;
  std::vector<SolvedPuzzle> puzzles;
  puzzles.reserve(static_cast<size_t>(wanted.count));
  for (int64_t candidate = 0; static_cast<int64_t>(puzzles.size()) < wanted.count; ++candidate) {
    if (candidate == candidates) {
      return absl::ResourceExhaustedError(absl::StrCat(
          candidates, " candidates gave ", puzzles.size(), " of ", wanted.count,
          " distinct puzzles (missing with one, two and three vectors: ", missing[0], ", ",
          missing[1], ", ", missing[2], "); request fewer, or a dissimilarity below ",
          wanted.minimum_dissimilarity));
    }
    random::Stream stream(seed, random::Purpose::kPuzzles, static_cast<uint64_t>(candidate),
                          static_cast<uint32_t>(part));
    // Most candidates are too similar to another puzzle, so this cheap check precedes the rules.
    const Puzzle puzzle = DrawPuzzle(wanted.style, stream);
    if (!IsApart(puzzle, others, wanted.minimum_dissimilarity)) continue;
    const std::optional<Deduction> deduction = Deduce(puzzle);
    if (!deduction) continue;
    int64_t& left = missing[static_cast<size_t>(deduction->vectors - 1)];
    if (left == 0 || !seen.insert(puzzle).second) continue;
    --left;
    puzzles.push_back({puzzle, *deduction});
  }
  return puzzles;
}

SolvedPuzzle TurnAndRename(const SolvedPuzzle& solved, int quarters,
                           const std::array<uint8_t, kSide>& names) {
  Puzzle puzzle = solved.puzzle;
  for (int quarter = 0; quarter < quarters; ++quarter) {
    const Puzzle before = puzzle;
    for (size_t cell = 0; cell < kCells; ++cell) {
      puzzle[cell % kSide * kSide + (kSide - 1 - cell / kSide)] = before[cell];
    }
  }
  for (uint8_t& value : puzzle) {
    if (value != kBlank && value != kTarget) value = names[value - 1U];
  }
  return {puzzle, Deduce(puzzle).value_or(solved.deduction)};
}

std::vector<SolvedPuzzle> WithVariants(const std::vector<SolvedPuzzle>& puzzles, uint64_t seed) {
  absl::flat_hash_set<Puzzle> seen;
  for (const SolvedPuzzle& solved : puzzles) seen.insert(solved.puzzle);
  std::vector<SolvedPuzzle> all;
  all.reserve(3 * puzzles.size());
  for (size_t i = 0; i < puzzles.size(); ++i) {
    all.push_back(puzzles[i]);
    random::Stream stream(seed, random::Purpose::kPuzzles, i,
                          static_cast<uint32_t>(Part::kVariants));
    for (const int64_t turn : random::SampleWithoutReplacement(stream, 3, 2, /*sorted=*/false)) {
      // A duplicate variant is rare; another renaming makes a different puzzle.
      SolvedPuzzle variant;
      do {
        std::array<uint8_t, kSide> names = {};
        const auto order = random::SampleWithoutReplacement(stream, kSide, kSide, false);
        std::transform(order.begin(), order.end(), names.begin(),
                       [](int64_t symbol) { return static_cast<uint8_t>(symbol + 1); });
        variant = TurnAndRename(puzzles[i], static_cast<int>(turn) + 1, names);
      } while (!seen.insert(variant.puzzle).second);
      all.push_back(variant);
    }
  }
  return all;
}

}  // namespace lengthwise::tasks::latin_square
