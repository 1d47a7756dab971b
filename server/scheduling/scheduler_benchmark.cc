// Time to pick the next pack out of a million queued trials of several owners and priorities, while
// other trials end and new ones arrive. Percentiles are over single calls.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "server/scheduling/scheduler.h"

namespace lengthwise::server {
namespace {

constexpr int64_t kTrials = 1'000'000;
constexpr int kOwners = 20;
constexpr int kPriorities = 5;
constexpr int kWorkers = 200;

class Queue {
 public:
  explicit Queue(int64_t pack_size) : pack_size_(pack_size), scheduler_({}, 1) {
    for (int i = 0; i < kWorkers; ++i) {
      scheduler_.Register(absl::StrCat("w", i), static_cast<int32_t>(pack_size), now_);
    }
    while (scheduler_.queued() < kTrials) AddPack();
  }

  // Leases the next pack and returns the time it took. Its trials end a while later, and others are
  // added.
  double LeaseNext() {
    const std::string worker = absl::StrCat("w", leases_ % kWorkers);
    const auto start = std::chrono::steady_clock::now();
    const auto granted = scheduler_.Grant(worker, now_);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    ++leases_;
    running_.push_back(granted->trials);
    if (running_.size() > kWorkers) {
      const size_t any = random_() % running_.size();
      for (const TrialChange& change : running_[any]) {
        scheduler_.Finish(change.trial, change.token, v1::Outcome::COMPLETED, 0, "", now_)
            .status()
            .IgnoreError();
      }
      std::swap(running_[any], running_.back());
      running_.pop_back();
    }
    while (scheduler_.queued() < kTrials) AddPack();
    return took.count();
  }

 private:
  void AddPack() {
    ++packs_;
    const PackTraits traits = {.priority = static_cast<int32_t>(random_() % kPriorities),
                               .owner = absl::StrCat("owner", random_() % kOwners),
                               .shape = absl::StrCat("shape", packs_ % 1000)};
    for (int64_t i = 0; i < pack_size_; ++i) {
      scheduler_.Add({.key = ++trials_, .pack = packs_}, traits);
    }
  }

  const int64_t pack_size_;
  const absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  Scheduler scheduler_;
  std::mt19937_64 random_;
  std::vector<std::vector<TrialChange>> running_;
  int64_t trials_ = 0;
  int64_t packs_ = 0;
  int64_t leases_ = 0;
};

void BM_LeaseNextPackOfAMillionTrials(benchmark::State& state) {
  Queue queue(state.range(0));
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(queue.LeaseNext());
    state.SetIterationTime(seconds.back());
  }
  std::sort(seconds.begin(), seconds.end());
  state.counters["p50_us"] = 1e6 * seconds[seconds.size() / 2];
  state.counters["p99_us"] = 1e6 * seconds[seconds.size() * 99 / 100];
  state.counters["max_us"] = 1e6 * seconds.back();
}
// Argument: trials per pack.
BENCHMARK(BM_LeaseNextPackOfAMillionTrials)
    ->Arg(1)
    ->Arg(30)
    ->UseManualTime()
    ->Iterations(50'000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lengthwise::server

BENCHMARK_MAIN();
