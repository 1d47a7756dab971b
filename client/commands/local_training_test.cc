#include "client/commands/local_training.h"

#include <sched.h>

#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

TEST(WorkerCountTest, FollowsTheUsableCpus) {
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "this machine has one CPU";
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const int workers = WorkerCount({.device = "cpu"}, /*trials=*/100);
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_EQ(workers, 1);
}

TEST(WorkerCountTest, IsTheRequestOrAtMostOnePerTrial) {
  EXPECT_EQ(WorkerCount({.device = "cpu", .count = 7}, /*trials=*/2), 7);
  EXPECT_EQ(WorkerCount({.device = "cpu"}, /*trials=*/1), 1);
  EXPECT_EQ(WorkerCount({.device = "cpu", .threads = 10'000}, /*trials=*/100), 1);
}

}  // namespace
}  // namespace lengthwise::client
