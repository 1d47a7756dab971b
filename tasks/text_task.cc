#include "tasks/text_task.h"

#include "absl/strings/str_cat.h"

namespace lengthwise::tasks {
namespace {

// Of Evaluation.lengths.
constexpr int64_t kLargestSize = 100'000;

TextExample Draw(const TextTask& task, const TextData& data, random::Stream stream) {
  const int64_t size = task.DrawSize(data.smallest_size, data.largest_size, stream);
  return task.Sample(size, /*augmented=*/true, stream);
}

// The stream of a data set's example with this number.
random::Stream StreamOf(const TextData& data, uint64_t number) {
  return random::Stream(data.set_seed.value_or(data.seed), random::Purpose::kDataSet, number);
}

}  // namespace

TextExample TrainingExample(const TextTask& task, const TextData& data, uint64_t step,
                            uint32_t index) {
  random::Stream stream(data.seed, random::Purpose::kTrainingSamples, step, index);
  if (data.examples == 0) return Draw(task, data, stream);
  return Draw(task, data,
              StreamOf(data, static_cast<uint64_t>(stream.Between(0, data.examples - 1))));
}

TextExample EpochExamples::At(int64_t place) {
  return Draw(task_, data_, StreamOf(data_, NumberAt(place)));
}

size_t EpochExamples::LengthAt(int64_t place) {
  if (!task_.has_fixed_lengths()) return At(place).tokens.size();
  // Draw takes the size from the stream before anything else, so this is the size of At(place).
  random::Stream stream = StreamOf(data_, NumberAt(place));
  return static_cast<size_t>(
      task_.LongestExample(task_.DrawSize(data_.smallest_size, data_.largest_size, stream)));
}

uint64_t EpochExamples::NumberAt(int64_t place) {
  const int64_t epoch = place / data_.examples;
  if (epoch != epoch_) {
    order_.emplace(data_.seed, random::Purpose::kExampleOrder, static_cast<uint64_t>(epoch),
                   static_cast<uint64_t>(data_.examples));
    epoch_ = epoch;
  }
  return (*order_)(static_cast<uint64_t>(place % data_.examples));
}

int64_t LongestTraining(const TextTask& task, int64_t largest_size, int64_t packed,
                        bool attend_across) {
  return attend_across || task.augments() ? packed : task.LongestExample(largest_size);
}

TextExample EvaluationQuestion(const TextTask& task, uint64_t seed, int64_t size, int64_t number) {
  random::Stream stream(seed, random::Purpose::kEvaluationSamples, static_cast<uint64_t>(size),
                        static_cast<uint32_t>(number));
  return task.Question(size, number, stream);
}

absl::StatusOr<int64_t> SizeOfPrompt(const TextTask& task, size_t tokens) {
  for (int64_t size = 1; size <= kLargestSize; ++size) {
    if (!task.Check(size).ok()) continue;
    // A question is drawn only where it may be as long.
    if (task.LongestExample(size) < static_cast<int64_t>(tokens)) continue;
    if (EvaluationQuestion(task, /*seed=*/0, size, 0).prompt >= tokens) return size;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", tokens, " tokens, and no question of the task has as many"));
}

int64_t LongestContinued(const TextTask& task, int64_t size) {
  return (task.augments() ? 2 : 1) * task.LongestExample(size);
}

}  // namespace lengthwise::tasks
