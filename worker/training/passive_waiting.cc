#include "worker/training/passive_waiting.h"

#include <omp.h>

#include <algorithm>

// Without it, the team has one thread.
#ifndef _OPENMP
#error "compile this file with -fopenmp"
#endif

namespace lengthwise::worker::training {

PassiveWaiting::PassiveWaiting(int threads) {
  // One more than CPUs, with the threads of the kernels. A team's first thread is not counted.
  const int team = std::max(2, omp_get_num_procs() - threads + 2);
  holder_ = std::thread([this, team] { HoldTeam(team); });
  platform::MutexLock lock(mutex_);
  while (!started_) changed_.Wait(mutex_);
}

PassiveWaiting::~PassiveWaiting() {
  {
    platform::MutexLock lock(mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  holder_.join();
}

void PassiveWaiting::HoldTeam(int threads) {
  // An empty loop could be optimized away.
  int members = 0;
#pragma omp parallel num_threads(threads) reduction(+ : members)
  members += 1;
  platform::MutexLock lock(mutex_);
  started_ = members > 0;
  changed_.NotifyAll();
  while (!ends_) changed_.Wait(mutex_);
}

}  // namespace lengthwise::worker::training
