#include "server/coordination/artifact_sweeper.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "platform/log.h"
#include "server/coordination/retention.h"

namespace lengthwise::server {
namespace {

// Between two looks at the records, while there are none and while the store fails. Records that
// came in between share the transaction that deletes them.
constexpr std::chrono::seconds kInterval(1);
constexpr int64_t kRecordsAtOnce = 1000;
// Later records wait for a page. The deletion of a large experiment goes on after them.
constexpr std::chrono::seconds kMostForAPage(5);
// Each deletion may wait for a network.
constexpr size_t kThreads = 4;

}  // namespace

void ArtifactSweeper::Start() {
  platform::MutexLock lock(stop_mutex_);
  thread_ = std::thread([this] { Run(); });
}

void ArtifactSweeper::Stop() {
  {
    platform::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  // Under a mutex, so that every caller returns only after the thread has ended.
  platform::MutexLock lock(stop_mutex_);
  if (thread_.joinable()) thread_.join();
}

bool ArtifactSweeper::Pause() {
  platform::MutexLock lock(mutex_);
  if (std::exchange(paused_, true)) return false;
  changed_.NotifyAll();
  while (working_) changed_.Wait(mutex_);
  return true;
}

void ArtifactSweeper::Resume() {
  platform::MutexLock lock(mutex_);
  paused_ = false;
  changed_.NotifyAll();
}

void ArtifactSweeper::Flush() {
  platform::MutexLock lock(mutex_);
  const int64_t mine = ++asked_;
  changed_.NotifyAll();
  while (made_ < mine && !paused_ && !stopping_) changed_.Wait(mutex_);
}

bool ArtifactSweeper::MayContinue(Time until) {
  platform::MutexLock lock(mutex_);
  return !paused_ && !stopping_ && std::chrono::steady_clock::now() < until;
}

void ArtifactSweeper::Run() {
  auto next = std::chrono::steady_clock::now();
  platform::MutexLock lock(mutex_);
  while (!stopping_) {
    if (paused_ || (made_ == asked_ && std::chrono::steady_clock::now() < next)) {
      changed_.WaitUntil(mutex_, std::max(next, std::chrono::steady_clock::now() + kInterval));
      continue;
    }
    working_ = true;
    const int64_t asked = asked_;
    mutex_.Unlock();
    const bool more = Pass(std::chrono::steady_clock::now() + kMostForAPage);
    mutex_.Lock();
    working_ = false;
    made_ = asked;
    next = std::chrono::steady_clock::now() + (more ? std::chrono::seconds(0) : kInterval);
    changed_.NotifyAll();
  }
}

bool ArtifactSweeper::Pass(Time until) {
  auto reader = storage_.Read();
  if (!reader.ok()) return false;
  const auto sweeps = (*reader)->ListSweeps(after_, kRecordsAtOnce);
  reader->reset();  // it pins a snapshot
  if (!sweeps.ok()) return false;
  const bool is_last = static_cast<int64_t>(sweeps->size()) < kRecordsAtOnce;
  after_ = is_last ? 0 : sweeps->back().key;
  Forget(SweepAll(*sweeps, until));
  return !is_last || std::chrono::steady_clock::now() >= until;
}

std::vector<int64_t> ArtifactSweeper::SweepAll(const std::vector<SweepRecord>& sweeps, Time until) {
  std::vector<int64_t> done;
  std::atomic<bool> is_reached = true;
  std::atomic<size_t> next = 0;
  platform::Mutex results;
  const auto work = [&] {
    const auto goes_on = [&] { return is_reached && MayContinue(until); };
    for (size_t i = next++; i < sweeps.size() && goes_on(); i = next++) {
      const absl::Status swept = Sweep(storage_, artifacts_, sweeps[i], goes_on);
      if (absl::IsAborted(swept)) continue;
      // While the store cannot be reached, no deletion succeeds.
      if (absl::IsUnavailable(swept)) is_reached = false;
      // No artifact can have this name, or the database is damaged and does not say what is needed.
      const bool is_given_up = IsLost(swept);
      platform::MutexLock lock(results);
      if (swept.ok() || is_given_up) done.push_back(sweeps[i].key);
      if (!swept.ok() && !failed_ && MayContinue(until)) {
        platform::LogWarning("cannot delete the artifacts of ", sweeps[i].experiment,
                             is_given_up ? ": " : " now: ", swept.message());
      }
      failed_ = !swept.ok();
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(sweeps.size(), kThreads); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return done;
}

void ArtifactSweeper::Forget(const std::vector<int64_t>& keys) {
  if (keys.empty()) return;
  std::promise<void> forgotten;
  loop_.PostCommand({.apply = [&]() -> CommandLoop::Answer {
                       // Commit fails after an error of the store, so it is not lost.
                       for (const int64_t key : keys) {
                         storage_.writer().DeleteSweep(key).IgnoreError();
                       }
                       return [&] { forgotten.set_value(); };
                     },
                     // The records stay and are looked at again.
                     .fail = [&](const absl::Status&) { forgotten.set_value(); }});
  forgotten.get_future().wait();
}

}  // namespace lengthwise::server
