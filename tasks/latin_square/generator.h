// Generates Latin square puzzles the way the published generator does.
//
// It fills a Latin square cell by cell, blanks cells in random order down to a number of clues
// drawn for the puzzle, makes one blank the target, and drops puzzles whose target no rule settles.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_GENERATOR_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_GENERATOR_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {

// Selects the cells that may be blanked. A cell is deducible in its row (or column) if no other
// blank of the row (or column) could hold its symbol.
enum class Blanking : uint8_t {
  // Blanks cells of the first column only while they are deducible, and all others freely. The
  // published generator does this, because its test compares a row with a quotient that is a whole
  // number only in the first column. Its 9,000 puzzles show it: some have three clues, and the
  // first column has more clues than the others.
  kPublished,
  // Blanks every cell only while it is deducible, as the published generator's comments describe.
  kDeducible,
};

struct PuzzleStyle {
  Blanking blanking = Blanking::kPublished;
  // The target number of clues is uniform between these, inclusive.
  int fewest_clues = 3;
  int most_clues = 11;
};

// Draws a Latin square. Distribution: fill cells in order with a random possible symbol, and
// restart if none is possible. Implemented as one draw from the table of all squares.
Puzzle DrawLatinSquare(random::Stream& stream);

// One attempt. Perhaps no rule settles the target.
Puzzle DrawPuzzle(const PuzzleStyle& style, random::Stream& stream);

// Purpose of the random numbers: the `row` of Purpose::kPuzzles. Different parts draw different
// puzzles.
enum class Part : uint32_t { kPool = 0, kValidation = 1, kVariants = 2, kSplit = 3 };

struct Wanted {
  PuzzleStyle style;
  // Divided evenly among the conditions. The first ones get the remainder.
  int64_t count = 0;
  // The dissimilarity (Features) to each of these puzzles must exceed minimum_dissimilarity, which
  // is below 1.
  absl::Span<const Puzzle> apart_from;
  double minimum_dissimilarity = 0;
};

// Distinct puzzles in the order found: a function of (seed, part, wanted). RESOURCE_EXHAUSTED if
// they are too rare to find.
absl::StatusOr<std::vector<SolvedPuzzle>> GeneratePuzzles(const Wanted& wanted, uint64_t seed,
                                                          Part part);

// Rotates the puzzle clockwise by `quarters` right angles and renames symbol s to names[s - 1].
SolvedPuzzle TurnAndRename(const SolvedPuzzle& solved, int quarters,
                           const std::array<uint8_t, kSide>& names);

// Follows each puzzle with two variants: rotated by different angles, with renamed symbols. The 108
// puzzles of the human study were made from 36 this way. All results are distinct if the given
// puzzles are. A function of (seed, puzzles).
std::vector<SolvedPuzzle> WithVariants(const std::vector<SolvedPuzzle>& puzzles, uint64_t seed);

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_GENERATOR_H_
