#include "worker/training/core_sharing.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/mutex.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::ElementsAre;

// Two threads that are always ready to run and one that rarely is, sampled every 200 ms.
class CoreSharingTest : public testing::Test {
 protected:
  // `waiting`: fraction of the time that the second thread waits for a core.
  bool Pass(double waiting, absl::Duration duration = absl::Milliseconds(200)) {
    for (absl::Duration left = duration; left > absl::ZeroDuration();
         left -= absl::Milliseconds(200)) {
      time_ += absl::Milliseconds(200);
      times_[1].running_seconds += 0.2;
      times_[2].running_seconds += 0.2 * (1 - waiting);
      times_[2].waiting_seconds += 0.2 * waiting;
      times_[3].running_seconds += 0.001;
      times_[3].waiting_seconds += 0.01;
      sharing_.Update(time_, times_);
    }
    return sharing_.shared();
  }

  CoreSharing sharing_;
  absl::Duration time_ = absl::Hours(5);
  // Independent of the earlier state.
  CoreSharing::Times times_ = {
      {1, {.running_seconds = 10, .waiting_seconds = 1000}}, {2, {}}, {3, {}}};
};

TEST_F(CoreSharingTest, ShortWaitsDoNotCountAsSharing) {
  EXPECT_FALSE(sharing_.Update(time_, times_));
  EXPECT_FALSE(Pass(0, absl::Seconds(5)));
  EXPECT_FALSE(Pass(0.18, absl::Seconds(5)));
}

TEST_F(CoreSharingTest, OneWaitingThreadCountsAsSharing) {
  Pass(0);
  EXPECT_TRUE(Pass(0.3));
  EXPECT_NEAR(sharing_.waited_fraction(), 0.3, 1e-9);
}

TEST_F(CoreSharingTest, RetriesBackOff) {
  std::vector<double> shared_seconds;
  Pass(0);
  EXPECT_TRUE(Pass(0.5));
  for (int retry = 0; retry < 8; ++retry) {
    const absl::Duration begin = time_;
    while (Pass(sharing_.shared() ? 0 : 0.5)) {
    }
    shared_seconds.push_back(absl::ToDoubleSeconds(time_ - begin));
    EXPECT_TRUE(Pass(0.5));  // one sample is enough to detect sharing again
  }
  EXPECT_THAT(shared_seconds, ElementsAre(1, 2, 4, 8, 16, 30, 30, 30));
}

TEST_F(CoreSharingTest, SettlingResetsTheRetryDelay) {
  Pass(0.5, absl::Seconds(20));
  EXPECT_FALSE(Pass(0, absl::Seconds(40)));
  EXPECT_TRUE(Pass(0.5));
  EXPECT_FALSE(Pass(0, CoreSharing::kFirstRetry));
}

TEST_F(CoreSharingTest, StartingThreadsDoNotCountAsSharing) {
  Pass(0);
  times_.erase(2);
  times_[4] = {.running_seconds = 1, .waiting_seconds = 10};
  EXPECT_FALSE(Pass(0));
}

class ThreadChoiceTest : public testing::Test {
 protected:
  // Makes steps for `duration`; a step with k threads takes `seconds_of` k. Returns the number of
  // threads of the last step.
  int Train(absl::Duration duration, bool shared, const std::map<int, double>& seconds_of) {
    int threads = 0;
    for (const absl::Duration end = time_ + duration; time_ < end;) {
      threads = choice_.Next(time_, shared);
      const absl::Duration step = absl::Seconds(seconds_of.at(threads));
      choice_.CountStep(step);
      time_ += step;
      threads_seen_.insert(threads);
    }
    return threads;
  }

  ThreadChoice choice_ = ThreadChoice(4);
  absl::Duration time_ = absl::Hours(5);
  std::set<int> threads_seen_;
};

TEST_F(ThreadChoiceTest, OwnCoresGetAllThreads) {
  EXPECT_EQ(Train(absl::Seconds(100), false, {{4, 0.1}, {2, 0.01}, {1, 0.01}}), 4);
  EXPECT_THAT(threads_seen_, ElementsAre(4));
}

TEST_F(ThreadChoiceTest, SharedCoresGetTheFastestNumber) {
  const absl::Duration tries = absl::Seconds(7);
  EXPECT_EQ(Train(tries, true, {{4, 0.1}, {2, 0.05}, {1, 0.02}}), 1);
  EXPECT_EQ(Train(ThreadChoice::kValid + tries, true, {{4, 0.1}, {2, 0.02}, {1, 0.05}}), 2);
  EXPECT_EQ(Train(ThreadChoice::kValid + tries, true, {{4, 0.02}, {2, 0.05}, {1, 0.05}}), 4);
  EXPECT_EQ(Train(absl::Seconds(1), false, {{4, 0.1}}), 4);
}

TEST_F(ThreadChoiceTest, TriesTakeAtMostATenthOfTheTime) {
  const std::map<int, double> seconds_of = {{4, 30}, {2, 10}, {1, 5}};
  absl::Duration fastest;
  const absl::Duration begin = time_;
  while (time_ - begin < absl::Hours(20)) {
    const absl::Duration before = time_;
    if (Train(absl::Seconds(1), true, seconds_of) == 1) fastest += time_ - before;
  }
  EXPECT_GT(fastest, 0.89 * (time_ - begin));
}

TEST_F(ThreadChoiceTest, OneThreadNeedsNoTries) {
  choice_ = ThreadChoice(1);
  EXPECT_EQ(Train(absl::Seconds(10), true, {{1, 0.1}}), 1);
}

// Uses the real process: two busy threads on one CPU.
TEST(CoreSharingMonitorTest, DetectsBeginAndEndOfSharing) {
  if (platform::ReadSchedulingTimes().empty())
    GTEST_SKIP() << "the kernel records no scheduling times";
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  // Threads inherit the affinity.
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  platform::Mutex mutex;
  platform::ConditionVariable changed;
  std::vector<bool> told;
  const auto wait_until_told = [&](size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    platform::MutexLock lock(mutex);
    while (told.size() < count && changed.WaitUntil(mutex, deadline)) {
    }
    return told;
  };
  const CoreSharingMonitor monitor(2, [&](bool shared, double waited_fraction) {
    platform::MutexLock lock(mutex);
    told.push_back(shared);
    if (shared) {
      EXPECT_GE(waited_fraction, CoreSharing::kSharedFraction);
    }
    changed.NotifyAll();
  });
  std::atomic<bool> enough = false;
  const auto spin = [&enough] {
    while (!enough) {
    }
  };
  std::thread a(spin), b(spin);
  EXPECT_THAT(wait_until_told(1), ElementsAre(true));
  enough = true;
  a.join();
  b.join();
  EXPECT_THAT(wait_until_told(2), ElementsAre(true, false));
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace
}  // namespace lengthwise::worker::training
