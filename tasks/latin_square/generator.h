// Makes Latin-square puzzles, as the published generator does.
//
// A Latin square is filled cell by cell, cells are blanked in random order until a number of clues
// drawn for the puzzle is left, one blank becomes the target, and puzzles whose target no rule
// settles are dropped.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_GENERATOR_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_GENERATOR_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/latin_square/deduction.h"
#include "tasks/latin_square/puzzle.h"

namespace lengthwise::tasks::latin_square {

// Which cells may be blanked. A cell can be deduced in its row (or column) where no other blank of
// the row (or column) could take its symbol.
enum class Blanking : uint8_t {
  // Those of the first column only while they can be deduced, all others always. What the published
  // generator does (its test of a cell compares a row with a quotient that is a whole number in the
  // first column alone), and what its 9,000 puzzles look like: some have three clues, and the first
  // column has more clues than the others.
  kPublished,
  // All only while they can be deduced, as its comments say.
  kDeducible,
};

struct PuzzleStyle {
  Blanking blanking = Blanking::kPublished;
  // The number of clues that blanking aims at is uniform between these, both included.
  int fewest_clues = 3;
  int most_clues = 11;
};

struct SolvedPuzzle {
  Puzzle puzzle = {};
  Deduction deduction;

  bool operator==(const SolvedPuzzle&) const = default;
};

// A Latin square by filling cells in order with a random symbol that is still possible, and
// starting again where none is. (Drawn from the table of all squares with that distribution.)
Puzzle DrawLatinSquare(random::Stream& stream);

// One attempt; nullopt where no rule settles the target.
std::optional<SolvedPuzzle> DrawPuzzle(const PuzzleStyle& style, random::Stream& stream);

// What numbers are drawn for: the `row` of Purpose::kPuzzles. Calls for different parts draw
// different puzzles.
enum class Part : uint32_t { kPool = 0, kValidation = 1, kVariants = 2, kSplit = 3 };

struct Wanted {
  PuzzleStyle style;
  // Shared evenly by the conditions: the first get one more where it does not divide by three.
  int64_t count = 0;
  // Puzzles from which each must differ by more than minimum_dissimilarity (Features), which is
  // below 1.
  absl::Span<const Puzzle> apart_from;
  double minimum_dissimilarity = 0;
};

// Different puzzles in the order in which they were found, a function of (seed, part, wanted).
// RESOURCE_EXHAUSTED where they are too rare to be found.
absl::StatusOr<std::vector<SolvedPuzzle>> GeneratePuzzles(const Wanted& wanted, uint64_t seed,
                                                          Part part);

// The puzzle turned clockwise by `quarters` right angles, with symbol s renamed to names[s - 1].
SolvedPuzzle TurnAndRename(const SolvedPuzzle& solved, int quarters,
                           const std::array<uint8_t, kSide>& names);

// Each of the puzzles followed by two variants of it, turned by different angles and with renamed
// symbols: how the 108 puzzles of the study with people were made of 36. All differ, as the given
// ones do. A function of (seed, puzzles).
std::vector<SolvedPuzzle> WithVariants(const std::vector<SolvedPuzzle>& puzzles, uint64_t seed);

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_GENERATOR_H_
