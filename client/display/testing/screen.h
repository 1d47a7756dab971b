// Emulates the part of a terminal that this program uses, so that tests check what a person sees.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TESTING_SCREEN_H_
#define LENGTHWISE_CLIENT_DISPLAY_TESTING_SCREEN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/display/terminal.h"

namespace lengthwise::client {

// Supports line ends, moving up, and clearing to the end of a line or of the screen. Ignores
// colours and modes; tabs are not supported. Not thread-safe.
class Screen {
 public:
  explicit Screen(const TerminalSize& size);

  void Write(absl::string_view text);
  // Keeps the lower lines, as terminals do, and cuts longer lines.
  void Resize(const TerminalSize& size);

  // The visible lines from the top, without trailing spaces and trailing empty lines.
  std::vector<std::string> Lines() const;
  bool cursor_is_shown() const { return cursor_is_shown_; }
  // Number of times that more than one line was cleared at once, which causes flicker.
  int clears() const { return clears_; }

 private:
  void Sequence(absl::string_view parameters, char command);
  void NewLine();

  TerminalSize size_;
  // Each cell holds one UTF-8 character.
  std::vector<std::vector<std::string>> rows_;
  size_t row_ = 0;
  size_t column_ = 0;
  bool cursor_is_shown_ = true;
  int clears_ = 0;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TESTING_SCREEN_H_
