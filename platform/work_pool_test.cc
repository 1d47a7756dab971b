#include "platform/work_pool.h"

#include <atomic>
#include <latch>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

TEST(WorkPool, RunsEverySubmittedTask) {
  std::atomic<int> done = 0;
  {
    WorkPool pool(3);
    for (int i = 0; i < 1000; ++i) pool.Submit("a", [&] { ++done; });
  }
  EXPECT_EQ(done, 1000);
}

TEST(WorkPool, RunsTasksSubmittedDuringDestruction) {
  std::atomic<int> done = 0;
  {
    WorkPool pool(1);
    pool.Submit("a", [&] { pool.Submit("a", [&] { pool.Submit("a", [&] { ++done; }); }); });
  }
  EXPECT_EQ(done, 1);
}

TEST(WorkPool, RunsOneTaskPerThreadAtOnce) {
  WorkPool pool(4);
  std::latch all(4);  // a pool with fewer threads would never pass
  for (int i = 0; i < 4; ++i) {
    pool.Submit(i % 2 == 0 ? "a" : "b", [&] { all.arrive_and_wait(); });
  }
  all.wait();
}

TEST(WorkPool, ExpiredTasksAreNotRun) {
  std::vector<std::string> log;
  {
    WorkPool pool(1, absl::Milliseconds(1));
    pool.Submit("a", [] { absl::SleepFor(absl::Milliseconds(2)); });
    pool.Submit(
        "a", [&] { log.push_back("run"); }, [&] { log.push_back("too late"); });
    pool.Submit("a", [&] { log.push_back("has no limit"); });
  }
  EXPECT_EQ(log, (std::vector<std::string>{"too late", "has no limit"}));
  {
    WorkPool pool(1, absl::Hours(1));
    pool.Submit(
        "a", [&] { log.push_back("run"); }, [&] { log.push_back("too late"); });
  }
  EXPECT_EQ(log.back(), "run");
}

TEST(WorkPool, LanesTakeTurns) {
  std::string order;
  {
    WorkPool pool(1);
    std::latch submitted(1);
    pool.Submit("first", [&] { submitted.wait(); });
    for (int i = 0; i < 3; ++i) pool.Submit("a", [&] { order += 'a'; });
    for (int i = 0; i < 2; ++i) pool.Submit("b", [&] { order += 'b'; });
    submitted.count_down();
  }
  EXPECT_EQ(order, "ababa");
}

TEST(WorkPool, OneLaneLeavesAThreadToOthers) {
  WorkPool pool(2);
  std::latch held(1), other(1);
  for (int i = 0; i < 2; ++i) pool.Submit("dear", [&] { held.wait(); });
  pool.Submit("cheap", [&] { other.count_down(); });
  other.wait();
  held.count_down();
}

TEST(WorkPool, FullLaneTakesNoMoreTasksThatExpire) {
  WorkPool pool(2);
  std::latch began(1), held(1);
  pool.Submit("a", [&] {
    began.count_down();
    held.wait();
  });
  began.wait();
  const auto submit = [&](const std::string& lane) {
    return pool.Submit(
        lane, [] {}, [] {});
  };
  for (size_t i = 0; i < WorkPool::kMostWaiting; ++i) EXPECT_TRUE(submit("a"));
  EXPECT_FALSE(submit("a"));
  EXPECT_TRUE(submit("b"));
  EXPECT_TRUE(pool.Submit("a", [] {})) << "a step of a stream has no limit";
  held.count_down();
}

TEST(WorkPool, KeepsTheOrderWithOneThread) {
  std::vector<int> order;
  {
    WorkPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Submit("a", [&order, i] { order.push_back(i); });
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

}  // namespace
}  // namespace lengthwise::platform
