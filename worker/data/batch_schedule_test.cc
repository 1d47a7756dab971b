#include "worker/data/batch_schedule.h"

#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::worker::data {
namespace {

using ::testing::ElementsAre;

v1::Training Drawn(int32_t min, int32_t max, uint64_t seed) {
  v1::Training training;
  training.mutable_lengths()->set_min(min);
  training.mutable_lengths()->set_max(max);
  training.set_schedule_seed(seed);
  return training;
}

TEST(BatchScheduleTest, EveryLengthOfTheRangeIsEquallyLikely) {
  constexpr int kSteps = 40'000;
  std::vector<int> counts(44);
  const v1::Training training = Drawn(3, 42, 7);
  for (int step = 1; step <= kSteps; ++step) {
    const int64_t length = BatchSchedule(training).LengthOfStep(step);
    ASSERT_GE(length, 3);
    ASSERT_LE(length, 42);
    ++counts[static_cast<size_t>(length)];
  }
  // Binomial with mean 1000 and standard deviation 31.
  for (int length = 3; length <= 42; ++length) EXPECT_NEAR(counts[length], 1000, 5 * 31) << length;
}

TEST(BatchScheduleTest, DependsOnlyOnSeedAndStep) {
  v1::Training training = Drawn(1, 40, 1);
  std::vector<int64_t> lengths;
  for (int step = 1; step <= 20; ++step)
    lengths.push_back(BatchSchedule(training).LengthOfStep(step));
  training.set_batch_size(3);
  training.set_steps(5);
  for (int step = 20; step >= 1; --step)
    EXPECT_EQ(BatchSchedule(training).LengthOfStep(step), lengths[step - 1]);

  training.set_schedule_seed(2);
  int different = 0;
  for (int step = 1; step <= 20; ++step)
    different += BatchSchedule(training).LengthOfStep(step) != lengths[step - 1];
  EXPECT_GT(different, 10);
}

TEST(BatchScheduleTest, DrawsNewSamplesAtEveryStep) {
  v1::Training training = Drawn(1, 40, 7);
  training.set_batch_size(4);
  const BatchSchedule schedule(training);
  const SampleAddresses samples = schedule.SamplesOfStep(9, 5);
  EXPECT_EQ(samples.purpose, random::Purpose::kTrainingSamples);
  EXPECT_EQ(samples.seed, 5U);
  EXPECT_EQ(samples.schedule_seed, 7U);
  EXPECT_EQ(samples.step, 9U);
  EXPECT_THAT(samples.rows, ElementsAre(0, 1, 2, 3));
}

TEST(BatchScheduleTest, DataSeedsOrderASharedSet) {
  v1::Training training;
  training.set_batch_size(10);
  training.set_examples(40);
  training.mutable_lengths()->set_min(3);
  training.mutable_lengths()->set_max(3);
  const SampleAddresses own = BatchSchedule(training).SamplesOfStep(1, 5);
  EXPECT_EQ(own.seed, 5u);
  training.set_data_set_seed(0);
  const BatchSchedule schedule(training);
  const SampleAddresses one = schedule.SamplesOfStep(1, 5), other = schedule.SamplesOfStep(1, 6);
  EXPECT_EQ(one.seed, 0u);
  EXPECT_EQ(other.seed, 0u);
  EXPECT_EQ(one.rows, own.rows);
  EXPECT_NE(one.rows, other.rows);
}

TEST(BatchScheduleTest, ReadsADataSetInEpochs) {
  v1::Training training = Drawn(3, 4, 1);
  training.set_batch_size(4);
  training.set_examples(12);  // 6 per length: batches of 4 and 2
  const BatchSchedule schedule(training);
  for (const int epoch : {0, 3}) {
    std::set<std::pair<uint64_t, uint32_t>> seen;
    for (int step = 4 * epoch + 1; step <= 4 * epoch + 4; ++step) {
      const SampleAddresses samples = schedule.SamplesOfStep(step, 5);
      EXPECT_EQ(samples.purpose, random::Purpose::kDataSet);
      EXPECT_EQ(static_cast<int64_t>(samples.step), schedule.LengthOfStep(step));
      for (const uint32_t row : samples.rows) seen.insert({samples.step, row});
    }
    EXPECT_EQ(seen.size(), 12U) << "in epoch " << epoch;
  }
}

TEST(BatchScheduleTest, RangeOfOneLength) {
  for (int step = 1; step <= 10; ++step)
    EXPECT_EQ(BatchSchedule(Drawn(5, 5, 0)).LengthOfStep(step), 5);
}

}  // namespace
}  // namespace lengthwise::worker::data
