// Puzzles: a small grid of tokens in, one class out, and a set of puzzles held out in the place of
// unseen lengths. No LibTorch, no gRPC.
#ifndef LENGTHWISE_TASKS_PUZZLES_H_
#define LENGTHWISE_TASKS_PUZZLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tasks/task.h"

namespace lengthwise::tasks {

// Some puzzles of a PuzzleTask, row-major.
struct PuzzleSet {
  std::vector<int32_t> tokens;      // [size, cells]
  std::vector<int32_t> classes;     // [size]
  std::vector<int32_t> conditions;  // [size], places in PuzzleTask::conditions()

  int64_t size() const { return static_cast<int64_t>(classes.size()); }
};

// No puzzle is in two of them.
struct PuzzleData {
  PuzzleSet training;
  // Made like the training puzzles and not trained on; may be empty.
  PuzzleSet held_out;
  // The same ones in the same order for every seed, so that trials can be compared puzzle by
  // puzzle.
  PuzzleSet validation;
};

// A class for each grid of rows() x columns() tokens. The tokens are the model's input, row by row.
class PuzzleTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kPuzzle; }

  virtual int64_t rows() const = 0;
  virtual int64_t columns() const = 0;
  int64_t cells() const { return rows() * columns(); }

  // Tokens are {0, ..., token_values() - 1}. Token 0 is an empty cell, whose features are all zero;
  // token t > 0 has a one at t - 1 of its token_values() - 1 features.
  virtual int32_t token_values() const = 0;
  virtual int32_t classes() const = 0;

  // Of each trial's training set.
  virtual int64_t training_puzzles() const = 0;

  // Names of the groups of puzzles that results are given for, easiest first.
  virtual absl::Span<const std::string> conditions() const = 0;

  // The data of the trials whose data seed is `seed`; the same for the same seed and parameters on
  // every machine. Makes puzzles at the first call, which takes about a second; later ones and
  // those for other seeds take milliseconds. INVALID_ARGUMENT for a file that is not of puzzles,
  // the error of reading it for one that cannot be read, RESOURCE_EXHAUSTED where the parameters
  // leave too few puzzles; all say which parameter to change.
  virtual absl::StatusOr<PuzzleData> Data(uint64_t seed) const = 0;

  // cells() tokens as files and people write them.
  virtual std::string Format(absl::Span<const int32_t> tokens) const = 0;
};

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_PUZZLES_H_
