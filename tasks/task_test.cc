#include "tasks/task.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "random/stream.h"
#include "tasks/catalogue.h"

namespace lengthwise::tasks {
namespace {

struct Batch {
  std::vector<int32_t> inputs, targets;
  std::vector<uint8_t> mask;
};

Batch Draw(const TransductionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
           int64_t n, uint32_t first_row, uint32_t rows) {
  const auto inputs = static_cast<size_t>(task.InputLength(n)) * rows;
  const auto targets = static_cast<size_t>(task.OutputLength(n)) * rows;
  // Poisoned, so that elements left unwritten show.
  Batch batch{std::vector<int32_t>(inputs, -1), std::vector<int32_t>(targets, -1),
              std::vector<uint8_t>(targets, 77)};
  std::vector<uint32_t> all(rows);
  std::iota(all.begin(), all.end(), first_row);
  SampleRows(
      task, seed, purpose, step, n, all,
      {absl::MakeSpan(batch.inputs), absl::MakeSpan(batch.targets), absl::MakeSpan(batch.mask)});
  return batch;
}

class SampleRowsTest : public ::testing::TestWithParam<std::string> {
 protected:
  SampleRowsTest() : owner_(CreateTask(GetParam(), {}).value()) {}

  const TransductionTask& task() const { return dynamic_cast<const TransductionTask&>(*owner_); }

 private:
  std::unique_ptr<Task> owner_;
};

TEST_P(SampleRowsTest, PartsMakeTheWholeBatch) {
  for (const int64_t n : {1, 2, 9, 40}) {
    const Batch whole = Draw(task(), 3, random::Purpose::kTrainingSamples, 11, n, 0, 10);
    Batch parts = Draw(task(), 3, random::Purpose::kTrainingSamples, 11, n, 0, 4);
    const Batch rest = Draw(task(), 3, random::Purpose::kTrainingSamples, 11, n, 4, 6);
    parts.inputs.insert(parts.inputs.end(), rest.inputs.begin(), rest.inputs.end());
    parts.targets.insert(parts.targets.end(), rest.targets.begin(), rest.targets.end());
    parts.mask.insert(parts.mask.end(), rest.mask.begin(), rest.mask.end());
    EXPECT_EQ(whole.inputs, parts.inputs);
    EXPECT_EQ(whole.targets, parts.targets);
    EXPECT_EQ(whole.mask, parts.mask);
  }
}

TEST_P(SampleRowsTest, SeedPurposeStepAndRowMatter) {
  const auto inputs = [this](uint64_t seed, random::Purpose purpose, uint64_t step, uint32_t row) {
    return Draw(task(), seed, purpose, step, 40, row, 8).inputs;
  };
  const auto base = inputs(3, random::Purpose::kTrainingSamples, 11, 0);
  EXPECT_EQ(base, inputs(3, random::Purpose::kTrainingSamples, 11, 0));
  EXPECT_NE(base, inputs(4, random::Purpose::kTrainingSamples, 11, 0));
  EXPECT_NE(base, inputs(3, random::Purpose::kEvaluationSamples, 11, 0));
  EXPECT_NE(base, inputs(3, random::Purpose::kTrainingSamples, 12, 0));
  EXPECT_NE(base, inputs(3, random::Purpose::kTrainingSamples, 11, 8));
}

TEST_P(SampleRowsTest, FillsItsBuffersWithValidTokens) {
  for (const int64_t n : {1, 2, 3, 7, 40}) {
    const Batch batch = Draw(task(), 0, random::Purpose::kPreview, 0, n, 0, 100);
    for (const int32_t token : batch.inputs) {
      ASSERT_GE(token, 0);
      ASSERT_LT(token, task().input_size());
    }
    for (const int32_t token : batch.targets) {
      ASSERT_GE(token, 0);
      ASSERT_LT(token, task().output_size());
    }
    for (const uint8_t counts : batch.mask) ASSERT_LE(counts, 1);
  }
}

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const TaskEntry* entry : TaskEntries()) {
    if (entry->kind == TaskKind::kTransduction) names.push_back(entry->name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllTasks, SampleRowsTest, ::testing::ValuesIn(AllNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lengthwise::tasks
