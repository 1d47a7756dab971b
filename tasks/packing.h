// Examples of different lengths in sequences of one length, for training a language model without
// much padding.
#ifndef LENGTHWISE_TASKS_PACKING_H_
#define LENGTHWISE_TASKS_PACKING_H_

#include <cstdint>
#include <vector>

#include "tasks/text_task.h"

namespace lengthwise::tasks {

struct PackingOptions {
  int64_t sequences = 128;
  int64_t length = 2048;  // tokens of a sequence
  // Positions start again at 0 in each example; false: they run through the sequence.
  bool positions_restart = true;
  // The loss counts the tokens of answers alone, not those of prompts.
  bool answers_only = false;
};

// All row-major [sequences, length]. An example is never cut, so with attention within examples
// and positions that restart its loss is what it is alone.
struct PackedBatch {
  std::vector<int32_t> tokens;     // padding_token() after the last example
  std::vector<int32_t> positions;  // 0 at padding
  // Number of the example within its sequence, from 0; kNoExample at padding. A token may look at
  // those before it with its own number, which makes the mask block-diagonal and causal.
  std::vector<int32_t> segments;
  // The token to be predicted here: the next one of the same example. kNoTarget at an example's
  // last token, at padding, and where the loss does not count.
  std::vector<int32_t> targets;
};

inline constexpr int32_t kNoExample = -1;
inline constexpr int32_t kNoTarget = -1;

// Packs the examples 0, 1, 2, ... of (data, step) into sequences, each filled until the next
// example does not fit, which then starts the sequence after it. A function of its arguments. An
// example that is longer than a sequence is left out.
PackedBatch PackTrainingBatch(const TextTask& task, const TextData& data, uint64_t step,
                              const PackingOptions& options);

// Where the first example of a step and that of the step after it stand (EpochExamples::At).
struct EpochRange {
  int64_t first = 0;
  int64_t end = 0;
};

// The same of the examples that stand at `first` and after in the epochs of a data set. Each step
// begins where the one before it ends, so that no example is left out.
struct EpochBatch {
  PackedBatch batch;
  EpochRange range;
};
EpochBatch PackEpochBatch(const TextTask& task, const TextData& data, int64_t first,
                          const PackingOptions& options);

// The range of that batch alone.
EpochRange RangeOfEpochBatch(const TextTask& task, const TextData& data, int64_t first,
                             const PackingOptions& options);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_PACKING_H_
