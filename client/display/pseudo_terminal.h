// A program in a terminal that a test types into and reads.
#ifndef LENGTHWISE_CLIENT_DISPLAY_PSEUDO_TERMINAL_H_
#define LENGTHWISE_CLIENT_DISPLAY_PSEUDO_TERMINAL_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/display/terminal.h"

namespace lengthwise::client {

// Not thread-safe. Failures end the test program with a message.
class PseudoTerminal {
 public:
  // Starts a program, looked for in $PATH, with variables beside those of this process.
  PseudoTerminal(const std::vector<std::string>& arguments,
                 const std::vector<std::pair<std::string, std::string>>& environment,
                 const TerminalSize& size);
  // Kills it where it still runs.
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  pid_t pid() const { return pid_; }
  void Type(const std::string& text);
  void Resize(const TerminalSize& size);

  // What it wrote since the last call, as soon as that has `text`; nullopt when it has not by then,
  // or the program ended before.
  std::optional<std::string> ReadUntil(const std::string& text, absl::Duration timeout);
  // What it writes within `time`; ends with the program.
  std::string ReadFor(absl::Duration time);
  // What ReadUntil did not find, and was not read.
  const std::string& unread() const { return unread_; }

  bool ended() const { return ended_; }

 private:
  // Reads what is there, or waits for it until `deadline`. False at the end.
  bool Read(absl::Time deadline);

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool ended_ = false;
  std::string unread_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_PSEUDO_TERMINAL_H_
