// The terminal that the client writes to.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_
#define LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_

namespace lengthwise::client {

struct TerminalSize {
  int width = 80;
  int height = 24;
};

// Asks the system each time, so that a resized window is noticed; COLUMNS and 80 by 24 where there
// is no terminal.
TerminalSize GetTerminalSize();

// Whether standard output is a terminal.
bool OutputIsTerminal();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_
