#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "worker/training/core_sharing.h"

namespace lengthwise::worker::training {
namespace {

std::string ReadOf(pid_t thread, const std::string& file) {
  std::ifstream stream("/proc/self/task/" + std::to_string(thread) + "/" + file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// Waits until a thread sleeps and returns its CPU time in nanoseconds.
int64_t TimeWhenAsleep(pid_t thread) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    const std::string stat = ReadOf(thread, "stat");  // "TID (NAME) STATE ..."
    const size_t name_end = stat.rfind(')');
    if (name_end != std::string::npos && stat.substr(name_end, 3) == ") S") {
      return std::stoll(ReadOf(thread, "schedstat"));
    }
    sched_yield();
  }
  ADD_FAILURE() << "the thread does not sleep";
  return 0;
}

// Returns the CPU time that a thread of two spends in an empty loop and then waiting for the next.
int64_t TimeToWait() {
  pid_t other = 0;
  std::vector<int64_t> times;
  for (int i = 0; i < 6; ++i) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) other = gettid();
    times.push_back(TimeWhenAsleep(other));
  }
  std::adjacent_difference(times.begin(), times.end(), times.begin());
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

TEST(PassiveWaitingTest, ThreadsSleepWhileAnInstanceExists) {
  if (omp_get_num_procs() < 2) GTEST_SKIP() << "OpenMP never spins for long on one CPU";
  if (ReadOf(gettid(), "schedstat").empty())
    GTEST_SKIP() << "the kernel records no scheduling times";
  const int64_t before = TimeToWait();
  int64_t passive = 0;
  {
    const PassiveWaiting waiting(/*threads=*/2);
    passive = TimeToWait();
  }
  const int64_t after = TimeToWait();
  EXPECT_LT(passive, before / 10);
  EXPECT_LT(passive, after / 10);
}

TEST(PassiveWaitingTest, AllowsMoreThreadsThanCpus) {
  const PassiveWaiting waiting(/*threads=*/4 * omp_get_num_procs());
}

}  // namespace
}  // namespace lengthwise::worker::training
