#include "client/display/interrupt.h"

#include <csignal>

namespace lengthwise::client {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t signal_count = 0;
// Handlers that the outermost guard replaced.
struct sigaction saved_actions[3];
int depth = 0;

void Count(int) { signal_count = signal_count + 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  if (depth++ > 0) return;
  signal_count = 0;
  struct sigaction action = {};
  action.sa_handler = Count;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &saved_actions[i]);
    // Under nohup a command outlives its terminal.
    if (kSignals[i] == SIGHUP && saved_actions[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  if (--depth > 0) return;
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &saved_actions[i], nullptr);
}

int InterruptGuard::count() const { return signal_count; }

}  // namespace lengthwise::client
