// What a person sees after a terminal got some text: as much of a terminal as this program uses.
#ifndef LENGTHWISE_CLIENT_DISPLAY_SCREEN_H_
#define LENGTHWISE_CLIENT_DISPLAY_SCREEN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/display/terminal.h"

namespace lengthwise::client {

// Understands line ends, tabs aside, moving up, clearing to the end of a line or of the screen, and
// leaves out colours and modes. Not thread-safe.
class Screen {
 public:
  explicit Screen(const TerminalSize& size);

  void Write(absl::string_view text);
  // Keeps the lower lines, as terminals do; longer lines are cut.
  void Resize(const TerminalSize& size);

  // The lines that can be seen, from the top, without spaces at their ends and without empty ones
  // below.
  std::vector<std::string> Lines() const;
  bool cursor_is_shown() const { return cursor_is_shown_; }
  // How often more than a line was cleared at once, which flickers.
  int clears() const { return clears_; }

 private:
  void Sequence(absl::string_view parameters, char command);
  void NewLine();

  TerminalSize size_;
  // Each place a character of UTF-8.
  std::vector<std::vector<std::string>> rows_;
  size_t row_ = 0;
  size_t column_ = 0;
  bool cursor_is_shown_ = true;
  int clears_ = 0;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_SCREEN_H_
