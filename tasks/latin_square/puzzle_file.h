// Reads puzzles from a file, for training and validation on a published set.
#ifndef LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_FILE_H_
#define LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/latin_square/generator.h"

namespace lengthwise::tasks::latin_square {

struct FiledPuzzle {
  SolvedPuzzle solved;
  // Mean human accuracy on this puzzle, 0 to 1, if the file has it.
  std::optional<double> human_accuracy;
};

// Parses JSON in either of two layouts; ignores other keys.
//   {"puzzles": [{"puzzle": "0040405210200030", "solution": 1, "vectors": 1,
//                 "human_accuracy": 0.975}, ...]}         only "puzzle" is required
//   {"binary": [["2000500234001000", 4], ...], "ternary": [...], "quaternary": [...]}
// Solutions and conditions are deduced. INVALID_ARGUMENT, with the entry's location, for an unknown
// layout, an invalid or duplicate puzzle, a target that no rule settles, and a solution or
// condition that contradicts the deduction. `name` is the file's name in messages.
absl::StatusOr<std::vector<FiledPuzzle>> ParsePuzzleFile(absl::string_view text,
                                                         absl::string_view name);

// ParsePuzzleFile for a file. Returns the error of reading it; FAILED_PRECONDITION if it is
// not a regular file or exceeds 64 MiB.
absl::StatusOr<std::vector<FiledPuzzle>> ReadPuzzleFile(const std::string& path);

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_FILE_H_
