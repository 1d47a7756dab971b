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
  for (const FiledPuzzle& filed : *puzzles) {
    const auto again = ParsePuzzle(FormatPuzzle(filed.solved.puzzle));
    Must(again.ok() && *again == filed.solved.puzzle, "puzzles format and parse back");
    Must(Deduce(filed.solved.puzzle) == filed.solved.deduction, "a puzzle has its solution");
    Must(filed.human_accuracy.value_or(0) >= 0 && filed.human_accuracy.value_or(1) <= 1,
         "an accuracy is from 0 to 1");
  }
  return 0;
}
