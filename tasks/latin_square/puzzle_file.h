// Puzzles from a file, so that a published set can be trained on and validated with.
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
  // Mean accuracy of people on this puzzle, 0 to 1, where the file says it.
  std::optional<double> human_accuracy;
};

// Reads JSON in either of two layouts; other keys are passed over.
//   {"puzzles": [{"puzzle": "0040405210200030", "solution": 1, "vectors": 1,
//                 "human_accuracy": 0.975}, ...]}         all but "puzzle" may be absent
//   {"binary": [["2000500234001000", 4], ...], "ternary": [...], "quaternary": [...]}
// A puzzle's solution and condition are deduced. INVALID_ARGUMENT, with the puzzle's place, where
// the text is not in a layout, a puzzle is wrong or twice there, no rule settles its target, or
// what the file says of it is not what is deduced. `name` is what messages call the file.
absl::StatusOr<std::vector<FiledPuzzle>> ParsePuzzleFile(absl::string_view text,
                                                         absl::string_view name);

// The same from a file; its error where it cannot be read, INVALID_ARGUMENT for one that is not a
// regular file or has more than 64 MiB.
absl::StatusOr<std::vector<FiledPuzzle>> ReadPuzzleFile(const std::string& path);

}  // namespace lengthwise::tasks::latin_square

#endif  // LENGTHWISE_TASKS_LATIN_SQUARE_PUZZLE_FILE_H_
