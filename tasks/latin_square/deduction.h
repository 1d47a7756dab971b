// Solves a puzzle's target by rule, and counts the rows and columns that must be related to do so.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_DEDUCTION_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_DEDUCTION_H_

#include <cstdint>
#include <optional>

#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {

// The rules, in the order of application.
enum class Rule : uint8_t {
  kRow,                  // the target's row holds the three other symbols
  kColumn,               // its column holds them
  kRowAndColumn,         // row and column together hold them
  kRowWithTwoColumns,    // one clue in the row; the columns of its two blanks hold the symbol
  kRowWithThreeColumns,  // no clue in the row; the columns of its three blanks hold the symbol
  kColumnWithTwoRows,    // the same with rows and columns exchanged
  kColumnWithThreeRows,  //
};

struct Deduction {
  // 1, 2 or 3. The puzzle's condition: "one-, two- and three-vector" (binary, ternary, quaternary).
  int vectors = 0;
  uint8_t symbol = 0;
  Rule rule = Rule::kRow;

  bool operator==(const Deduction&) const = default;
};

// Applies the first rule that settles the target. Nullopt if no rule does, because the symbol is
// ambiguous or needs a longer argument, or if the symbol already occurs in the target's row or
// column. As in the published classifier of the Latin square task, no rule covers a row with two
// clues and one other blank.
std::optional<Deduction> Deduce(const Puzzle& puzzle);

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_DEDUCTION_H_
