#include "tasks/text.h"

namespace lengthwise::tasks {
namespace {

TextExample Draw(const TextTask& task, const TextData& data, random::Stream stream) {
  const int64_t size = stream.Between(data.smallest_size, data.largest_size);
  return task.Sample(size, /*augmented=*/true, stream);
}

}  // namespace

TextExample TrainingExample(const TextTask& task, const TextData& data, uint64_t step,
                            uint32_t index) {
  random::Stream stream(data.seed, random::Purpose::kTrainingSamples, step, index);
  if (data.examples == 0) return Draw(task, data, stream);
  const int64_t member = stream.Between(0, data.examples - 1);
  return Draw(task, data,
              random::Stream(data.seed, random::Purpose::kDataSet, static_cast<uint64_t>(member)));
}

int64_t LongestTraining(const TextTask& task, int64_t largest_size, int64_t packed,
                        bool attend_across) {
  return attend_across || task.augments() ? packed : task.LongestExample(largest_size);
}

int64_t LongestContinued(const TextTask& task, int64_t size) {
  return (task.augments() ? 2 : 1) * task.LongestExample(size);
}

}  // namespace lengthwise::tasks
