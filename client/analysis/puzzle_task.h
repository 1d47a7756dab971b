// The puzzles that a trial learned.
#ifndef LENGTHWISE_CLIENT_ANALYSIS_PUZZLE_TASK_H_
#define LENGTHWISE_CLIENT_ANALYSIS_PUZZLE_TASK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "proto/experiment_service.pb.h"
#include "tasks/puzzles.h"

namespace lengthwise::client {

// FAILED_PRECONDITION for a trial of a task that has no puzzles.
absl::StatusOr<std::unique_ptr<const tasks::PuzzleTask>> PuzzleTaskOf(const v1::Trial& trial);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_ANALYSIS_PUZZLE_TASK_H_
