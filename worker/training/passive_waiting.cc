#include "worker/training/passive_waiting.h"

#include <omp.h>

#include <algorithm>

// Without OpenMP the team would have one thread and no effect.
#ifndef _OPENMP
#error "compile this file with -fopenmp"
#endif

namespace lengthwise::worker::training {

PassiveWaiting::PassiveWaiting(int threads) {
  // Together with the kernels' threads this is one more than the CPUs. OpenMP does not count a
  // team's first thread.
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
  // The sum keeps the compiler from removing the loop.
  int members = 0;
#pragma omp parallel num_threads(threads) reduction(+ : members)
  members += 1;
  platform::MutexLock lock(mutex_);
  started_ = members > 0;
  changed_.NotifyAll();
  while (!ends_) changed_.Wait(mutex_);
}

}  // namespace lengthwise::worker::training
