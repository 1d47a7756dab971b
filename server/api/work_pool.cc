#include "server/api/work_pool.h"

#include <utility>

#include "absl/time/clock.h"

namespace lengthwise::server {

WorkPool::WorkPool(int threads, absl::Duration longest_wait) : longest_wait_(longest_wait) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkPool::~WorkPool() {
  {
    platform::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::Submit(std::function<void()> task, std::function<void()> too_late) {
  const absl::Time submitted = too_late ? absl::Now() : absl::InfiniteFuture();
  {
    platform::MutexLock lock(mutex_);
    tasks_.push_back({std::move(task), std::move(too_late), submitted});
    changed_.NotifyOne();  // under the lock: once the task has run, the pool may be destroyed
  }
}

void WorkPool::Run() {
  while (true) {
    Task task;
    {
      platform::MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
      // A running task may submit more. Its own thread then runs them.
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    const bool late = task.too_late && absl::Now() - task.submitted > longest_wait_;
    (late ? task.too_late : task.run)();
  }
}

}  // namespace lengthwise::server
