// Puzzles: a small grid of tokens in, one class out. A held-out set of puzzles takes the place of
// unseen lengths. Does not depend on LibTorch or gRPC.
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

// Puzzles of a PuzzleTask, row-major.
struct PuzzleSet {
  std::vector<int32_t> tokens;      // [size, cells]
  std::vector<int32_t> classes;     // [size]
  std::vector<int32_t> conditions;  // [size], indices into PuzzleTask::conditions()

  int64_t size() const { return static_cast<int64_t>(classes.size()); }
};

// The three sets are disjoint.
struct PuzzleData {
  PuzzleSet training;
  // Generated like the training puzzles but not trained on. May be empty.
  PuzzleSet held_out;
  // The same puzzles in the same order for every seed, so that trials can be compared puzzle by
  // puzzle.
  PuzzleSet validation;
};

// Maps each grid of tokens to a class. The model reads the tokens row by row.
class PuzzleTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kPuzzle; }

  virtual int64_t cells() const = 0;

  // Tokens are {0, ..., token_values() - 1}. Token 0 is an empty cell; all its features are zero.
  // Token t > 0 sets feature t - 1 of token_values() - 1 features.
  virtual int32_t token_values() const = 0;
  virtual int32_t classes() const = 0;

  // Size of each trial's training set.
  virtual int64_t training_puzzles() const = 0;

  // Names of the groups of puzzles that results are reported for, easiest first.
  virtual absl::Span<const std::string> conditions() const = 0;

  // The data for trials with the data seed `seed`. Equal seeds and parameters give equal data on
  // every machine. The first call generates puzzles and takes about a second; later calls take
  // milliseconds, with any seed. Errors: INVALID_ARGUMENT for an invalid puzzle file, the read
  // error for an unreadable one, RESOURCE_EXHAUSTED if the parameters leave too few puzzles. Each
  // names the parameter to change.
  virtual absl::StatusOr<PuzzleData> Data(uint64_t seed) const = 0;

  // Formats cells() tokens as in files.
  virtual std::string Format(absl::Span<const int32_t> tokens) const = 0;
};

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_PUZZLES_H_
