// Runs a program in a pseudo-terminal that a test types into and reads.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TESTING_PSEUDO_TERMINAL_H_
#define LENGTHWISE_CLIENT_DISPLAY_TESTING_PSEUDO_TERMINAL_H_

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
  // Starts a program found in $PATH, with `environment` added to this process's environment.
  PseudoTerminal(const std::vector<std::string>& arguments,
                 const std::vector<std::pair<std::string, std::string>>& environment,
                 const TerminalSize& size);
  // Kills the program if it still runs.
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  pid_t pid() const { return pid_; }
  void Type(const std::string& text);
  void Resize(const TerminalSize& size);

  // Waits until the output since the last call contains `text`, and returns that output. nullopt if
  // the timeout passes or the program ends first.
  std::optional<std::string> ReadUntil(const std::string& text, absl::Duration timeout);
  // Returns the output of the next `time`, or until the program ends.
  std::string ReadFor(absl::Duration time);
  // Output that ReadUntil received without finding its text.
  const std::string& unread() const { return unread_; }

  bool ended() const { return ended_; }

 private:
  // Reads available output, or waits for some until `deadline`. False at the end.
  bool Read(absl::Time deadline);

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool ended_ = false;
  std::string unread_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TESTING_PSEUDO_TERMINAL_H_
