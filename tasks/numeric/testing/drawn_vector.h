// Draws single samples of a regression task into vectors, for tests.
#ifndef LENGTHWISE_TASKS_NUMERIC_TESTING_DRAWN_VECTOR_H_
#define LENGTHWISE_TASKS_NUMERIC_TESTING_DRAWN_VECTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "gtest/gtest.h"
#include "random/stream.h"
#include "tasks/entry.h"
#include "tasks/regression.h"

namespace lengthwise::tasks::numeric {

struct DrawnVector {
  std::vector<double> inputs, targets;
  std::vector<int32_t> tokens;

  bool operator==(const DrawnVector&) const = default;
};

class EntryTask {
 public:
  explicit EntryTask(const TaskEntry& entry, const catalogue::Parameters& given = {}) {
    std::vector<catalogue::Problem> problems;
    owner_ = entry.create(catalogue::Resolve(entry, given, "task", problems));
    EXPECT_TRUE(problems.empty()) << problems.front().field << problems.front().description;
    task_ = dynamic_cast<const RegressionTask*>(owner_.get());
  }

  const RegressionTask& operator*() const { return *task_; }
  const RegressionTask* operator->() const { return task_; }

  // Sample `i`. Elements that the task does not write stay -77.
  DrawnVector Draw(const Domain& domain, uint32_t i, uint64_t seed = 0) const {
    DrawnVector drawn = Blank(domain.n);
    random::Stream stream(seed, random::Purpose::kPreview, 0, i);
    task_->Sample(domain, stream, Spans(drawn));
    return drawn;
  }

  std::vector<double> Solve(const std::vector<double>& inputs) const {
    DrawnVector drawn{.inputs = inputs, .targets = std::vector<double>(inputs.size(), -77)};
    task_->Solve(Spans(drawn));
    return drawn.targets;
  }

  std::vector<uint8_t> Mask(int64_t n) const {
    std::vector<uint8_t> mask(static_cast<size_t>(task_->Rows(n)), 77);
    task_->Mask(n, absl::MakeSpan(mask));
    return mask;
  }

  DrawnVector Blank(int64_t n, size_t samples = 1) const {
    const size_t rows = samples * static_cast<size_t>(task_->Rows(n));
    return {std::vector<double>(rows, -77), std::vector<double>(rows, -77),
            std::vector<int32_t>(task_->vocabulary() > 0 ? rows : 0, -77)};
  }

  static RegressionSample Spans(DrawnVector& drawn) {
    return {absl::MakeSpan(drawn.inputs), absl::MakeSpan(drawn.tokens),
            absl::MakeSpan(drawn.targets)};
  }

 private:
  std::unique_ptr<Task> owner_;
  const RegressionTask* task_ = nullptr;
};

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_TESTING_DRAWN_VECTOR_H_
