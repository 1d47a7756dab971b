#include "tasks/packing.h"

#include <algorithm>
#include <cstddef>

namespace lengthwise::tasks {
namespace {

// Writes the example into one sequence of the batch, from place `start` of all.
void Place(const TextExample& example, size_t start, int64_t first_position, int32_t segment,
           bool answers_only, PackedBatch& batch) {
  const size_t length = example.tokens.size();
  for (size_t i = 0; i < length; ++i) {
    batch.tokens[start + i] = example.tokens[i];
    batch.positions[start + i] = static_cast<int32_t>(first_position + static_cast<int64_t>(i));
    batch.segments[start + i] = segment;
    const bool counts = i + 1 < length && (!answers_only || i + 1 >= example.prompt);
    if (counts) batch.targets[start + i] = example.tokens[i + 1];
  }
}

}  // namespace

PackedBatch PackTrainingBatch(const TextTask& task, const TextData& data, uint64_t step,
                              const PackingOptions& options) {
  const auto length = static_cast<size_t>(options.length);
  const size_t places = static_cast<size_t>(options.sequences) * length;
  PackedBatch batch{.tokens = std::vector<int32_t>(places, task.padding_token()),
                    .positions = std::vector<int32_t>(places, 0),
                    .segments = std::vector<int32_t>(places, kNoExample),
                    .targets = std::vector<int32_t>(places, kNoTarget)};
  size_t sequence = 0;
  size_t used = 0;
  int32_t segment = 0;
  for (uint32_t index = 0; length > 0; ++index) {
    const TextExample example = TrainingExample(task, data, step, index);
    if (example.tokens.size() > length) {
      // Without this a task of such examples alone would never end.
      if (index >= places) break;
      continue;
    }
    if (used + example.tokens.size() > length) {
      ++sequence;
      used = 0;
      segment = 0;
    }
    if (sequence == static_cast<size_t>(options.sequences)) break;
    Place(example, sequence * length + used,
          options.positions_restart ? 0 : static_cast<int64_t>(used), segment++,
          options.answers_only, batch);
    used += example.tokens.size();
  }
  return batch;
}

}  // namespace lengthwise::tasks
