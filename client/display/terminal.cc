#include "client/display/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace lengthwise::client {

TerminalSize GetTerminalSize() {
  TerminalSize size;
  winsize answer = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &answer) == 0 && answer.ws_col > 0 && answer.ws_row > 0) {
    size.width = answer.ws_col;
    size.height = answer.ws_row;
    return size;
  }
  const char* columns = std::getenv("COLUMNS");
  int width = 0;
  if (columns != nullptr && absl::SimpleAtoi(columns, &width) && width >= 20) size.width = width;
  return size;
}

bool OutputIsTerminal() { return isatty(STDOUT_FILENO) == 1; }

}  // namespace lengthwise::client
