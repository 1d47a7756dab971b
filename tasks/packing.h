// Packs examples of different lengths into sequences of one length, so that training a language
// model wastes little on padding.
#ifndef LENGTHWISE_TASKS_PACKING_H_
#define LENGTHWISE_TASKS_PACKING_H_

#include <cstdint>
#include <vector>

#include "tasks/text_task.h"

namespace lengthwise::tasks {

struct PackingOptions {
  int64_t sequences = 128;
  int64_t length = 2048;  // tokens of a sequence
  // Restarts positions at 0 for each example. False: positions run through the sequence.
  bool positions_restart = true;
  // Counts only answer tokens in the loss, not prompt tokens.
  bool answers_only = false;
};

// All arrays are row-major [sequences, length]. Examples are never cut. With attention within
// examples and restarting positions, an example's loss is therefore the same as without packing.
struct PackedBatch {
  std::vector<int32_t> tokens;     // padding_token() after the last example
  std::vector<int32_t> positions;  // 0 at padding
  // Index of the example within its sequence, from 0; kNoExample at padding. A token attends to
  // earlier tokens with its own index: a block-diagonal causal mask.
  std::vector<int32_t> segments;
  // The token to predict: the next token of the same example. kNoTarget at an example's last token,
  // at padding, and where the loss does not count.
  std::vector<int32_t> targets;
  // TextTask::Ids; 0 at padding. Empty if the task has none.
  std::vector<int32_t> ids = {};
};

inline constexpr int32_t kNoExample = -1;
inline constexpr int32_t kNoTarget = -1;

// Packs the examples 0, 1, 2, ... of (data, step). The first example that does not fit starts the
// next sequence. Skips examples longer than a sequence. A function of its arguments.
PackedBatch PackTrainingBatch(const TextTask& task, const TextData& data, uint64_t step,
                              const PackingOptions& options);

// Places of the first example of a step and of the next step (EpochExamples::At).
struct EpochRange {
  int64_t first = 0;
  int64_t end = 0;
};

// PackTrainingBatch for a data set that is gone through in epochs, starting at the place `first`.
// Each step begins where the previous one ends, so no example is left out.
struct EpochBatch {
  PackedBatch batch;
  EpochRange range;
};
EpochBatch PackEpochBatch(const TextTask& task, const TextData& data, int64_t first,
                          const PackingOptions& options);

// Computes only the range of that batch, without its tokens.
EpochRange RangeOfEpochBatch(const TextTask& task, const TextData& data, int64_t first,
                             const PackingOptions& options);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_PACKING_H_
