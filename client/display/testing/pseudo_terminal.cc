#include "client/display/testing/pseudo_terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>

#include "absl/time/clock.h"

namespace lengthwise::client {
namespace {

winsize ToWinsize(const TerminalSize& size) {
  winsize result = {};
  result.ws_col = static_cast<unsigned short>(size.width);
  result.ws_row = static_cast<unsigned short>(size.height);
  return result;
}

void Require(bool condition, const char* what) {
  if (condition) return;
  std::cerr << "pseudo-terminal: cannot " << what << "\n";
  std::abort();
}

}  // namespace

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& arguments,
                               const std::vector<std::pair<std::string, std::string>>& environment,
                               const TerminalSize& size) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const winsize window = ToWinsize(size);
  pid_ = forkpty(&terminal_, nullptr, nullptr, &window);
  Require(pid_ >= 0, "fork");
  if (pid_ == 0) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execvp(argv[0], argv.data());
    _exit(127);
  }
}

PseudoTerminal::~PseudoTerminal() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(terminal_);
}

void PseudoTerminal::Type(const std::string& text) {
  Require(write(terminal_, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "write");
}

void PseudoTerminal::Resize(const TerminalSize& size) {
  const winsize window = ToWinsize(size);
  Require(ioctl(terminal_, TIOCSWINSZ, &window) == 0, "resize");
}

bool PseudoTerminal::Read(absl::Time deadline) {
  if (ended_) return false;
  const int64_t left = std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline - absl::Now()));
  pollfd readable = {.fd = terminal_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, static_cast<int>(std::min<int64_t>(left, 100))) <= 0) return true;
  std::array<char, 1 << 16> buffer;
  const ssize_t bytes = read(terminal_, buffer.data(), buffer.size());
  ended_ = bytes <= 0;  // EIO: the last process that had the terminal open has ended
  if (bytes > 0) unread_.append(buffer.data(), static_cast<size_t>(bytes));
  return !ended_;
}

std::optional<std::string> PseudoTerminal::ReadUntil(const std::string& text,
                                                     absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    if (const size_t found = unread_.find(text); found != std::string::npos) {
      const std::string read = unread_.substr(0, found + text.size());
      unread_.erase(0, read.size());
      return read;
    }
    if (absl::Now() >= deadline || !Read(deadline)) return std::nullopt;
  }
}

std::string PseudoTerminal::ReadFor(absl::Duration time) {
  const absl::Time deadline = absl::Now() + time;
  while (absl::Now() < deadline && Read(deadline)) {
  }
  return std::exchange(unread_, "");
}

}  // namespace lengthwise::client
