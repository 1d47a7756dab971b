// The terminal that the client writes to.
#ifndef LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_
#define LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_

namespace lengthwise::client {

struct TerminalSize {
  int width = 80;
  int height = 24;
};

// Asks the system on each call, so that resizing takes effect. Without a terminal: $COLUMNS, or 80
// by 24.
TerminalSize GetTerminalSize();

// Returns true if standard output is a terminal.
bool OutputIsTerminal();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_TERMINAL_H_
