#include <csignal>
#include <cstddef>
#include <iterator>

#include "client/display/terminal.h"

namespace lengthwise::client {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

volatile std::sig_atomic_t signal_count = 0;
// Handlers that the outermost guard replaced.
struct sigaction saved_actions[std::size(kSignals)];
int depth = 0;

volatile std::sig_atomic_t reader_ended = 0;

void Count(int signal) {
  signal_count = signal_count + 1;
  if (signal == SIGPIPE) reader_ended = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  if (depth++ > 0) return;
  signal_count = 0;
  struct sigaction action = {};
  action.sa_handler = Count;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &saved_actions[i]);
    // Under nohup a command outlives its terminal, and under systemd the reader of its output.
    const bool may_be_ignored = kSignals[i] == SIGHUP || kSignals[i] == SIGPIPE;
    if (may_be_ignored && saved_actions[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  if (--depth > 0) return;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &saved_actions[i], nullptr);
  }
  // What is buffered for the reader is written again at the exit.
  if (reader_ended != 0) std::signal(SIGPIPE, SIG_IGN);
}

int InterruptGuard::count() const { return signal_count; }

}  // namespace lengthwise::client
