#include "platform/work_pool.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace lengthwise::platform {

WorkPool::WorkPool(int threads, absl::Duration longest_wait)
    : longest_wait_(longest_wait), most_of_a_lane_(std::max(threads - 1, 1)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

WorkPool::~WorkPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::Submit(const std::string& lane, std::function<void()> task,
                      std::function<void()> too_late) {
  const absl::Time submitted = too_late ? absl::Now() : absl::InfiniteFuture();
  MutexLock lock(mutex_);
  std::deque<Task>& tasks = lanes_[lane].tasks;
  if (too_late && tasks.size() >= kMostWaiting) return false;
  if (tasks.empty()) turns_.push_back(lane);
  tasks.push_back({std::move(task), std::move(too_late), submitted});
  changed_.NotifyOne();  // under the lock: once the task has run, the pool may be destroyed
  return true;
}

void WorkPool::Run() {
  while (true) {
    std::string name;
    Task task;
    {
      MutexLock lock(mutex_);
      auto turn = turns_.end();
      while (true) {
        turn = std::find_if(turns_.begin(), turns_.end(), [this](const std::string& lane) {
          return stopping_ || lanes_[lane].running < most_of_a_lane_;
        });
        if (turn != turns_.end() || stopping_) break;
        changed_.Wait(mutex_);
      }
      // A running task may submit more. Its own thread then runs them.
      if (turn == turns_.end()) return;
      name = *turn;
      turns_.erase(turn);
      Lane& lane = lanes_[name];
      task = std::move(lane.tasks.front());
      lane.tasks.pop_front();
      ++lane.running;
      if (!lane.tasks.empty()) turns_.push_back(name);
    }
    const bool late = task.too_late && absl::Now() - task.submitted > longest_wait_;
    (late ? task.too_late : task.run)();
    task = {};
    MutexLock lock(mutex_);
    const auto lane = lanes_.find(name);
    if (--lane->second.running == 0 && lane->second.tasks.empty()) lanes_.erase(lane);
  }
}

}  // namespace lengthwise::platform
