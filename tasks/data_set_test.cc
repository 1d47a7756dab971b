#include "tasks/data_set.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::tasks {
namespace {

// Counts how often an epoch visits each example, keyed by length and number.
std::map<std::pair<int64_t, uint32_t>, int> Seen(const DataSet& data_set, int64_t epoch,
                                                 uint64_t data_seed) {
  std::map<std::pair<int64_t, uint32_t>, int> seen;
  for (int64_t i = 1; i <= data_set.Batches(); ++i) {
    const DataSet::Batch batch = data_set.BatchOfStep(5, epoch * data_set.Batches() + i);
    EXPECT_EQ(batch.epoch, epoch);
    for (const uint32_t example : data_set.Examples(batch, data_seed)) {
      ++seen[{batch.length, example}];
    }
  }
  return seen;
}

TEST(DataSetTest, EpochSeesEveryExampleOnce) {
  // 103 examples of 4 lengths: 26, 26, 26 and 25, in batches of 8, 8, 8 and 2 or 1.
  const DataSet data_set({.examples = 103, .batch_size = 8, .min_length = 3, .max_length = 6});
  EXPECT_EQ(data_set.Batches(), 16);
  for (const int64_t epoch : {0, 1, 7}) {
    const auto seen = Seen(data_set, epoch, 11);
    EXPECT_EQ(seen.size(), 103U);
    for (const auto& [example, times] : seen) {
      EXPECT_EQ(times, 1);
      EXPECT_LT(example.second, example.first == 6 ? 25U : 26U);
    }
  }
}

TEST(DataSetTest, LastBatchOfALengthMayBeSmaller) {
  // Ito et al.: 8,000 puzzles in batches of 128 make 62 full batches and one of 64.
  const DataSet data_set({.examples = 8000, .batch_size = 128, .min_length = 16, .max_length = 16});
  EXPECT_EQ(data_set.Batches(), 63);
  std::multiset<int64_t> rows;
  for (int64_t step = 1; step <= 63; ++step) rows.insert(data_set.BatchOfStep(0, step).rows);
  EXPECT_EQ(rows.count(128), 62U);
  EXPECT_EQ(rows.count(64), 1U);
}

TEST(DataSetTest, EveryEpochHasAnotherOrder) {
  const DataSet data_set({.examples = 1000, .batch_size = 10, .min_length = 1, .max_length = 2});
  std::vector<std::pair<int64_t, int64_t>> orders[2];
  for (int64_t step = 1; step <= 200; ++step) {
    const DataSet::Batch batch = data_set.BatchOfStep(1, step);
    orders[batch.epoch].push_back({batch.length, batch.first});
  }
  EXPECT_NE(orders[0], orders[1]);
  DataSet::Batch batch = data_set.BatchOfStep(1, 1);
  const std::vector<uint32_t> first = data_set.Examples(batch, 1);
  ++batch.epoch;
  EXPECT_NE(data_set.Examples(batch, 1), first);
}

TEST(DataSetTest, PackMembersShareBatchesNotExamples) {
  const DataSet data_set({.examples = 1000, .batch_size = 10, .min_length = 1, .max_length = 2});
  const DataSet::Batch batch = data_set.BatchOfStep(1, 17);
  EXPECT_EQ(data_set.Examples(batch, 1), data_set.Examples(batch, 1));
  EXPECT_NE(data_set.Examples(batch, 1), data_set.Examples(batch, 2));
}

TEST(DataSetTest, StepsAreAddressableInAnyOrder) {
  const DataSet data_set(
      {.examples = 100'000'000, .batch_size = 1000, .min_length = 1, .max_length = 40});
  const DataSet::Batch batch = data_set.BatchOfStep(3, 999'999'999'999);
  EXPECT_EQ(batch.epoch, 999'999'999'998 / data_set.Batches());
  EXPECT_LT(data_set.Examples(batch, 3).front(), 2'500'000U);
}

}  // namespace
}  // namespace lengthwise::tasks
