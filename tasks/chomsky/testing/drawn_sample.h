// Draws single samples of a catalogue task into vectors, for tests.
#ifndef LENGTHWISE_TASKS_CHOMSKY_TESTING_DRAWN_SAMPLE_H_
#define LENGTHWISE_TASKS_CHOMSKY_TESTING_DRAWN_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/catalogue.h"
#include "tasks/task.h"

namespace lengthwise::tasks::chomsky {

struct DrawnSample {
  std::vector<int32_t> input, target;
};

class CatalogueTask {
 public:
  explicit CatalogueTask(absl::string_view name, const catalogue::Parameters& parameters = {})
      : owner_(CreateTask(name, parameters).value()),
        task_(dynamic_cast<const TransductionTask&>(*owner_)) {}

  const TransductionTask& operator*() const { return task_; }
  const TransductionTask* operator->() const { return &task_; }

  // Row `row` of length `n`. Elements that the task does not write stay -1.
  DrawnSample Draw(int64_t n, uint32_t row, uint64_t seed = 0) const {
    DrawnSample sample{std::vector<int32_t>(static_cast<size_t>(task_.InputLength(n)), -1),
                       std::vector<int32_t>(static_cast<size_t>(task_.OutputLength(n)), -1)};
    random::Stream stream(seed, random::Purpose::kPreview, static_cast<uint64_t>(n), row);
    task_.Sample(n, stream, absl::MakeSpan(sample.input), absl::MakeSpan(sample.target));
    return sample;
  }

  std::vector<int32_t> Solve(const std::vector<int32_t>& input, size_t output_length) const {
    std::vector<int32_t> target(output_length, -1);
    task_.Solve(input, absl::MakeSpan(target));
    return target;
  }

  std::vector<uint8_t> Mask(const std::vector<int32_t>& target) const {
    std::vector<uint8_t> mask(target.size(), 77);
    task_.Mask(target, absl::MakeSpan(mask));
    return mask;
  }

 private:
  std::unique_ptr<Task> owner_;
  const TransductionTask& task_;
};

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_TESTING_DRAWN_SAMPLE_H_
