#include "models/layers/kernel_calls.h"

#include <cstdint>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "ATen/Parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::models {
namespace {

using ::testing::Each;

TEST(OnThreadsTest, EveryUnitIsDoneOnce) {
  for (const int threads : {1, 2, 3}) {
    SetThreads(threads);
    for (const int64_t count : {0, 1, 2, 3, 100, 1001}) {
      std::vector<int> done(static_cast<size_t>(count));
      OnThreads(count, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) ++done[static_cast<size_t>(unit)];
      });
      EXPECT_THAT(done, Each(1)) << threads << " threads";
    }
  }
}

TEST(OnThreadsTest, IdleThreadsTakeOverADelayedThreadsWork) {
  SetThreads(2);
  constexpr int64_t kUnits = 64;
  std::mutex lock;
  int64_t done = 0, by_held_up = 0;
  std::set<std::thread::id> threads;
  OnThreads(kUnits, [&](int64_t begin, int64_t end) {
    {
      const std::scoped_lock hold(lock);
      done += end - begin;
      threads.insert(std::this_thread::get_id());
      if (begin == 0) by_held_up = end - begin;
    }
    // The thread with the first unit waits until the others have done all remaining units.
    while (begin == 0) {
      std::this_thread::yield();
      const std::scoped_lock hold(lock);
      if (done == kUnits) break;
    }
  });
  EXPECT_EQ(threads.size(), 2);
  EXPECT_LT(by_held_up, kUnits / 2);
}

TEST(OnThreadsTest, FailureOfAnyThreadReachesTheCaller) {
  SetThreads(2);
  for (const int64_t failing : {0, 63}) {
    EXPECT_THROW(OnThreads(64,
                           [&](int64_t begin, int64_t end) {
                             if (begin <= failing && failing < end) throw std::bad_alloc();
                           }),
                 std::bad_alloc);
  }
}

TEST(OnThreadsTest, LibTorchHasOneThread) {
  SetThreads(3);
  EXPECT_EQ(at::get_num_threads(), 1);
  OnThreads(3, [](int64_t, int64_t) { EXPECT_EQ(at::get_num_threads(), 1); });
}

TEST(OnThreadsTest, WithinAnotherLoopItStaysOnItsThread) {
  SetThreads(2);
  OnThreads(2, [](int64_t, int64_t) {
    const std::thread::id outer = std::this_thread::get_id();
    OnThreads(10, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), outer); });
  });
}

}  // namespace
}  // namespace lengthwise::models
