#include "server/api/work_pool.h"

#include <atomic>
#include <latch>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(WorkPool, RunsEverySubmittedTask) {
  std::atomic<int> done = 0;
  {
    WorkPool pool(3);
    for (int i = 0; i < 1000; ++i) pool.Submit([&] { ++done; });
  }
  EXPECT_EQ(done, 1000);
}

TEST(WorkPool, RunsTasksSubmittedDuringDestruction) {
  std::atomic<int> done = 0;
  {
    WorkPool pool(1);
    pool.Submit([&] { pool.Submit([&] { pool.Submit([&] { ++done; }); }); });
  }
  EXPECT_EQ(done, 1);
}

TEST(WorkPool, RunsOneTaskPerThreadAtOnce) {
  WorkPool pool(4);
  std::latch all(4);  // a pool with fewer threads would never pass
  for (int i = 0; i < 4; ++i) pool.Submit([&] { all.arrive_and_wait(); });
  all.wait();
}

TEST(WorkPool, ExpiredTasksAreNotRun) {
  std::vector<std::string> log;
  {
    WorkPool pool(1, absl::Milliseconds(1));
    pool.Submit([] { absl::SleepFor(absl::Milliseconds(2)); });
    pool.Submit([&] { log.push_back("run"); }, [&] { log.push_back("too late"); });
    pool.Submit([&] { log.push_back("has no limit"); });
  }
  EXPECT_EQ(log, (std::vector<std::string>{"too late", "has no limit"}));
  {
    WorkPool pool(1, absl::Hours(1));
    pool.Submit([&] { log.push_back("run"); }, [&] { log.push_back("too late"); });
  }
  EXPECT_EQ(log.back(), "run");
}

TEST(WorkPool, KeepsTheOrderWithOneThread) {
  std::vector<int> order;
  {
    WorkPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Submit([&order, i] { order.push_back(i); });
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

}  // namespace
}  // namespace lengthwise::server
