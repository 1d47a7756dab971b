// Files of Latin square puzzles.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tasks/latin_square/puzzle.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  using namespace lengthwise::tasks::latin_square;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto puzzles = ParsePuzzleFile(text, "file");
  if (!puzzles.ok()) {
    Must(puzzles.status().code() == absl::StatusCode::kInvalidArgument,
         "a file is read or refused");
    Must(puzzles.status().message().size() < 400, "a refusal is short");
    return 0;
  }
  for (const SolvedPuzzle& solved : *puzzles) {
    const auto again = ParsePuzzle(FormatPuzzle(solved.puzzle));
    Must(again.ok() && *again == solved.puzzle, "puzzles format and parse back");
    Must(Deduce(solved.puzzle) == solved.deduction, "a puzzle has its solution");
  }
  return 0;
}
