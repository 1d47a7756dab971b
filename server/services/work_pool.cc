#include "server/services/work_pool.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace lengthwise::server {

WorkPool::WorkPool(int threads, absl::Duration longest_wait)
    : size_(threads), longest_wait_(longest_wait) {}

WorkPool::~WorkPool() {
  std::vector<std::thread> ended;
  {
    platform::MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    while (!threads_.empty()) changed_.Wait(mutex_);
    ended = std::move(ended_);
  }
  for (std::thread& thread : ended) thread.join();
}

void WorkPool::Submit(std::function<void()> task, std::function<void()> too_late) {
  const absl::Time submitted = too_late ? absl::Now() : absl::InfiniteFuture();
  platform::MutexLock lock(mutex_);
  tasks_.push_back({std::move(task), std::move(too_late), submitted});
  AddThread();
  changed_.NotifyAll();
}

WorkPool::Wait::Wait(WorkPool& pool) : pool_(pool) {
  platform::MutexLock lock(pool_.mutex_);
  ++pool_.waiting_;
  pool_.AddThread();
}

WorkPool::Wait::~Wait() {
  platform::MutexLock lock(pool_.mutex_);
  --pool_.waiting_;
}

void WorkPool::AddThread() {
  const int running = static_cast<int>(threads_.size()) - std::min(waiting_, kMostWaiting);
  if (static_cast<int>(tasks_.size()) <= idle_ || running >= size_) return;
  for (std::thread& thread : ended_) thread.join();
  ended_.clear();
  std::thread thread([this] { Run(); });
  const std::thread::id id = thread.get_id();
  threads_.emplace(id, std::move(thread));
}

void WorkPool::Run() {
  while (true) {
    Task task;
    {
      platform::MutexLock lock(mutex_);
      ++idle_;
      // Those that stood in for tasks that waited end when these go on.
      while (tasks_.empty() && !stopping_ &&
             static_cast<int>(threads_.size()) - waiting_ <= size_) {
        changed_.Wait(mutex_);
      }
      --idle_;
      if (tasks_.empty()) {
        const auto self = threads_.find(std::this_thread::get_id());
        ended_.push_back(std::move(self->second));
        threads_.erase(self);
        changed_.NotifyAll();
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    const bool late = task.too_late && absl::Now() - task.submitted > longest_wait_;
    (late ? task.too_late : task.run)();
  }
}

}  // namespace lengthwise::server
