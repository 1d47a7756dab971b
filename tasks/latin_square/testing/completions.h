// Enumerates the Latin squares that complete a puzzle. Tests compare the puzzle rules with them.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_TESTING_COMPLETIONS_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_TESTING_COMPLETIONS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {

// All 4 x 4 Latin squares.
inline const std::vector<Puzzle>& AllLatinSquares() {
  static const auto& all = *[] {
    auto* squares = new std::vector<Puzzle>;
    Puzzle square = {};
    const auto fits = [&square](size_t cell, uint8_t symbol) {
      for (size_t other = 0; other < cell; ++other) {
        const bool in_line = other / kSide == cell / kSide || other % kSide == cell % kSide;
        if (in_line && square[other] == symbol) return false;
      }
      return true;
    };
    const auto fill = [&](const auto& self, size_t cell) -> void {
      if (cell == kCells) {
        squares->push_back(square);
        return;
      }
      for (uint8_t symbol = 1; symbol <= kSide; ++symbol) {
        if (!fits(cell, symbol)) continue;
        square[cell] = symbol;
        self(self, cell + 1);
        square[cell] = 0;
      }
    };
    fill(fill, 0);
    return squares;
  }();
  return all;
}

struct Completions {
  int64_t count = 0;
  // Symbols of the target cell that occur in at least one completion.
  std::set<int> target_symbols;
};

// Finds all completions of a puzzle that has a target cell.
inline Completions Complete(const Puzzle& puzzle) {
  Completions completions;
  for (const Puzzle& square : AllLatinSquares()) {
    bool agrees = true;
    for (size_t cell = 0; cell < kCells && agrees; ++cell) {
      agrees = puzzle[cell] == kBlank || puzzle[cell] == kTarget || puzzle[cell] == square[cell];
    }
    if (!agrees) continue;
    ++completions.count;
    completions.target_symbols.insert(square[TargetCell(puzzle)]);
  }
  return completions;
}

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_TESTING_COMPLETIONS_H_
