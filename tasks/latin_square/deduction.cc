#include <array>
#include <bit>
#include <cstddef>

#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {
namespace {

// Sets of symbols: symbol s is bit s - 1.
using SymbolSet = uint8_t;
constexpr int kSymbols = 4;
constexpr SymbolSet kAllSymbols = 0b1111;

struct Lines {
  std::array<SymbolSet, kSide> rows = {};
  std::array<SymbolSet, kSide> columns = {};
};

Lines SymbolsOfLines(const Puzzle& puzzle) {
  Lines lines;
  for (size_t cell = 0; cell < kCells; ++cell) {
    if (puzzle[cell] == kBlank || puzzle[cell] == kTarget) continue;
    const auto symbol = static_cast<SymbolSet>(1U << (puzzle[cell] - 1U));
    lines.rows[cell / kSide] = static_cast<SymbolSet>(lines.rows[cell / kSide] | symbol);
    lines.columns[cell % kSide] = static_cast<SymbolSet>(lines.columns[cell % kSide] | symbol);
  }
  return lines;
}

// The symbol missing from `seen`, if exactly one is missing; otherwise 0.
uint8_t OnlyMissing(SymbolSet seen) {
  const auto missing = static_cast<SymbolSet>(kAllSymbols & ~seen);
  return std::popcount(missing) == 1 ? static_cast<uint8_t>(std::countr_zero(missing) + 1) : 0;
}

// The smallest symbol that the target's line lacks and that every line crossing it at its `blanks`
// other blanks holds; 0 if there is none. `crossing` are the symbols that those lines share.
uint8_t Excluded(SymbolSet line, SymbolSet crossing, int blanks) {
  const int clues = std::popcount(line);
  if (clues > 1 || blanks != kSymbols - 1 - clues) return 0;
  const auto symbols = static_cast<SymbolSet>(crossing & ~line);
  return symbols == 0 ? 0 : static_cast<uint8_t>(std::countr_zero(symbols) + 1);
}

// Applies the rules without checking the puzzle for contradictions.
std::optional<Deduction> ApplyRules(const Puzzle& puzzle, size_t target, const Lines& lines) {
  const size_t row = target / kSide;
  const size_t column = target % kSide;
  const SymbolSet in_row = lines.rows[row];
  const SymbolSet in_column = lines.columns[column];

  if (const uint8_t symbol = OnlyMissing(in_row)) return Deduction{1, symbol};
  if (const uint8_t symbol = OnlyMissing(in_column)) return Deduction{1, symbol};
  if (const uint8_t symbol = OnlyMissing(static_cast<SymbolSet>(in_row | in_column))) {
    return Deduction{2, symbol};
  }

  SymbolSet columns = kAllSymbols;
  SymbolSet rows = kAllSymbols;
  int blanks_in_row = 0;
  int blanks_in_column = 0;
  for (size_t i = 0; i < kSide; ++i) {
    if (puzzle[row * kSide + i] == kBlank) {
      columns = static_cast<SymbolSet>(columns & lines.columns[i]);
      ++blanks_in_row;
    }
    if (puzzle[i * kSide + column] == kBlank) {
      rows = static_cast<SymbolSet>(rows & lines.rows[i]);
      ++blanks_in_column;
    }
  }
  if (const uint8_t symbol = Excluded(in_row, columns, blanks_in_row)) return Deduction{3, symbol};
  if (const uint8_t symbol = Excluded(in_column, rows, blanks_in_column)) {
    return Deduction{3, symbol};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Deduction> Deduce(const Puzzle& puzzle) {
  const size_t target = TargetCell(puzzle);
  if (target == kCells) return std::nullopt;
  const Lines lines = SymbolsOfLines(puzzle);
  const std::optional<Deduction> deduction = ApplyRules(puzzle, target, lines);
  if (!deduction) return std::nullopt;
  const auto beside =
      static_cast<SymbolSet>(lines.rows[target / kSide] | lines.columns[target % kSide]);
  const bool is_taken = ((beside >> (deduction->symbol - 1)) & 1U) != 0;
  return is_taken ? std::nullopt : deduction;
}

}  // namespace lengthwise::tasks::latin_square
