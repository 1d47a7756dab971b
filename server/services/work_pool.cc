#include "server/services/work_pool.h"

#include <utility>

namespace lengthwise::server {

WorkPool::WorkPool(int threads) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkPool::~WorkPool() {
  {
    platform::MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::Submit(std::function<void()> task) {
  platform::MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
}

void WorkPool::Run() {
  while (true) {
    std::function<void()> task;
    {
      platform::MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace lengthwise::server
