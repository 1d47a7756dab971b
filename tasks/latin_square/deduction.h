// Which value a puzzle's target has, and how many rows and columns must be related to see it.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_DEDUCTION_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_DEDUCTION_H_

#include <cstdint>
#include <optional>

#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {

// The rules in the order in which they are tried.
enum class Rule : uint8_t {
  kRow,                  // the target's row holds the three other symbols
  kColumn,               // its column does
  kRowAndColumn,         // the two together do
  kRowWithTwoColumns,    // one clue in the row; the columns of its two blanks hold the symbol
  kRowWithThreeColumns,  // no clue in the row; the columns of its three blanks hold it
  kColumnWithTwoRows,    // the same with rows and columns exchanged
  kColumnWithThreeRows,  //
};

struct Deduction {
  // 1, 2 or 3: the puzzle's condition, "one-, two- and three-vector" (binary, ternary, quaternary).
  int vectors = 0;
  uint8_t symbol = 0;
  Rule rule = Rule::kRow;

  bool operator==(const Deduction&) const = default;
};

// The first rule that settles the target's symbol; nullopt where none does, be the symbol ambiguous
// or only seen by a longer argument, or where that symbol is already in the target's row or column.
// A row with two clues and one other blank
// has no rule of its own, as in the Latin square task's published classifier.
std::optional<Deduction> Deduce(const Puzzle& puzzle);

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_DEDUCTION_H_
