#include "tasks/packing.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lengthwise::tasks {
namespace {

// Writes an example into one sequence of the batch. `start` indexes the tokens of the whole batch.
void Place(const TextTask& task, const TextExample& example, size_t start, int64_t first_position,
           int32_t segment, bool answers_only, PackedBatch& batch) {
  const size_t length = example.tokens.size();
  if (!batch.ids.empty()) {
    const std::vector<int32_t> ids = task.Ids(example, example.tokens);
    std::copy(ids.begin(), ids.end(), batch.ids.begin() + static_cast<std::ptrdiff_t>(start));
  }
  for (size_t i = 0; i < length; ++i) {
    batch.tokens[start + i] = example.tokens[i];
    batch.positions[start + i] = static_cast<int32_t>(first_position + static_cast<int64_t>(i));
    batch.segments[start + i] = segment;
    const bool counts = i + 1 < length && (!answers_only || i + 1 >= example.prompt);
    if (counts) batch.targets[start + i] = example.tokens[i + 1];
  }
}

size_t LengthOf(const TextExample& example) { return example.tokens.size(); }
size_t LengthOf(size_t length) { return length; }

// Passes the examples of the places from `first` on, or their lengths, to put(example, place in the
// batch, first position, segment) until one does not fit, at whose place the range ends.
template <typename Next, typename Put>
EpochRange Fill(const PackingOptions& options, int64_t first, Next next, Put put) {
  const auto length = static_cast<size_t>(options.length);
  const auto sequences = static_cast<size_t>(options.sequences);
  size_t sequence = 0;
  size_t used = 0;
  int32_t segment = 0;
  int64_t number = 0;
  for (; length > 0; ++number) {
    const auto example = next(first + number);
    const size_t tokens = LengthOf(example);
    if (tokens > length) {
      // Guarantees termination if every example is too long.
      if (static_cast<size_t>(number) >= sequences * length) break;
      continue;
    }
    if (used + tokens > length) {
      ++sequence;
      used = 0;
      segment = 0;
    }
    if (sequence == sequences) break;
    put(example, sequence * length + used,
        options.positions_restart ? 0 : static_cast<int64_t>(used), segment++);
    used += tokens;
  }
  return {.first = first, .end = first + number};
}

template <typename Next>
EpochBatch Pack(const TextTask& task, const PackingOptions& options, int64_t first, Next next) {
  const size_t places =
      static_cast<size_t>(options.sequences) * static_cast<size_t>(options.length);
  PackedBatch batch{.tokens = std::vector<int32_t>(places, task.padding_token()),
                    .positions = std::vector<int32_t>(places, 0),
                    .segments = std::vector<int32_t>(places, kNoExample),
                    .targets = std::vector<int32_t>(places, kNoTarget)};
  if (task.has_ids()) batch.ids.assign(places, 0);
  const EpochRange range =
      Fill(options, first, next,
           [&](const TextExample& example, size_t start, int64_t position, int32_t segment) {
             Place(task, example, start, position, segment, options.answers_only, batch);
           });
  return {.batch = std::move(batch), .range = range};
}

}  // namespace

PackedBatch PackTrainingBatch(const TextTask& task, const TextData& data, uint64_t step,
                              const PackingOptions& options) {
  const auto next = [&](int64_t number) {
    return TrainingExample(task, data, step, static_cast<uint32_t>(number));
  };
  return Pack(task, options, /*first=*/0, next).batch;
}

EpochBatch PackEpochBatch(const TextTask& task, const TextData& data, int64_t first,
                          const PackingOptions& options) {
  EpochExamples examples(task, data);
  return Pack(task, options, first, [&](int64_t place) { return examples.At(place); });
}

EpochRange RangeOfEpochBatch(const TextTask& task, const TextData& data, int64_t first,
                             const PackingOptions& options) {
  EpochExamples examples(task, data);
  return Fill(
      options, first, [&](int64_t place) { return examples.LengthAt(place); },
      [](size_t, size_t, int64_t, int32_t) {});
}

}  // namespace lengthwise::tasks
