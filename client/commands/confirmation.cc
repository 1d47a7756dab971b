#include "client/commands/confirmation.h"

#include <poll.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/display/interrupt.h"

namespace lengthwise::client {
namespace {

// Poll interval for Ctrl-C, because a guard of the caller may keep it from ending the process.
constexpr int kTickMilliseconds = 100;

// Returns a line without its line end; empty at the end of the input and after Ctrl-C.
std::string ReadLine(const InterruptGuard& interrupts) {
  std::string line;
  while (interrupts.count() == 0) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, kTickMilliseconds) <= 0) continue;
    char c = '\0';
    if (read(STDIN_FILENO, &c, 1) != 1) return "";
    if (c == '\n') return line;
    line.push_back(c);
  }
  return "";
}

}  // namespace

void AddYesOption(CLI::App* command, bool& yes) {
  command->add_flag("--yes", yes, "Skips the confirmation, for scripts");
}

absl::Status Confirm(Program& program, const std::string& deed, const std::string& command) {
  if (isatty(STDIN_FILENO) != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this ", deed, "; cannot ask for confirmation without a terminal: run `", command, "`"));
  }
  program.out().flush();
  const InterruptGuard interrupts;  // before the question, which Ctrl-C may answer at once
  program.err() << "This " << deed << ". Continue? [y/N] " << std::flush;
  const std::string answer =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(ReadLine(interrupts)));
  if (answer == "y" || answer == "yes") return absl::OkStatus();
  return absl::CancelledError("nothing was done");
}

}  // namespace lengthwise::client
