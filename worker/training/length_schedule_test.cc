#include "worker/training/length_schedule.h"

#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::worker::training {
namespace {

v1::Training Lengths(int32_t min, int32_t max, uint64_t seed) {
  v1::Training training;
  training.mutable_lengths()->set_min(min);
  training.mutable_lengths()->set_max(max);
  training.set_schedule_seed(seed);
  return training;
}

TEST(LengthScheduleTest, EveryLengthOfTheRangeIsEquallyLikely) {
  constexpr int kSteps = 40'000;
  std::vector<int> counts(44);
  const v1::Training training = Lengths(3, 42, 7);
  for (int step = 1; step <= kSteps; ++step) {
    const int64_t length = LengthOfStep(training, step);
    ASSERT_GE(length, 3);
    ASSERT_LE(length, 42);
    ++counts[static_cast<size_t>(length)];
  }
  // Binomial with mean 1000 and standard deviation 31.
  for (int length = 3; length <= 42; ++length) EXPECT_NEAR(counts[length], 1000, 5 * 31) << length;
}

TEST(LengthScheduleTest, DependsOnSeedAndStepAlone) {
  v1::Training training = Lengths(1, 40, 1);
  std::vector<int64_t> lengths;
  for (int step = 1; step <= 20; ++step) lengths.push_back(LengthOfStep(training, step));
  training.set_batch_size(3);
  training.set_steps(5);
  for (int step = 20; step >= 1; --step) EXPECT_EQ(LengthOfStep(training, step), lengths[step - 1]);

  training.set_schedule_seed(2);
  int different = 0;
  for (int step = 1; step <= 20; ++step)
    different += LengthOfStep(training, step) != lengths[step - 1];
  EXPECT_GT(different, 10);
}

TEST(LengthScheduleTest, RangeOfOneLength) {
  for (int step = 1; step <= 10; ++step) EXPECT_EQ(LengthOfStep(Lengths(5, 5, 0), step), 5);
}

}  // namespace
}  // namespace lengthwise::worker::training
