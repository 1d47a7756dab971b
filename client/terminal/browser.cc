#include "client/terminal/browser.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lengthwise::client {
namespace {

std::string Of(const char* text) { return text == nullptr ? "" : text; }

// The first directory of $PATH that has the program; a path as it is. Empty: there is none.
std::string FindProgram(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? name : "";
  }
  const std::vector<std::string> directories = absl::StrSplit(path, ':', absl::SkipEmpty());
  for (const std::string& directory : directories) {
    std::string candidate = absl::StrCat(directory, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

// As a grandchild, of which nobody waits for the end. Between fork and exec only what is safe
// there.
absl::Status Start(const std::string& program, const std::string& path) {
  const pid_t child = fork();
  if (child < 0) return absl::InternalError("cannot start another process");
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    const int nothing = open("/dev/null", O_RDWR);
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      dup2(nothing, descriptor);
    }
    execl(program.c_str(), program.c_str(), path.c_str(), nullptr);
    _exit(127);
  }
  waitpid(child, nullptr, 0);
  return absl::OkStatus();
}

}  // namespace

absl::Status OpenInBrowser(const std::string& path,
                           const std::function<const char*(const char*)>& environment) {
  const std::string directories = Of(environment("PATH"));
  // It may name several, the first one that is there.
  const std::vector<std::string> browsers =
      absl::StrSplit(Of(environment("BROWSER")), ':', absl::SkipEmpty());
  for (const std::string& browser : browsers) {
    const std::string program = FindProgram(browser, directories);
    if (!program.empty()) return Start(program, path);
  }
  if (!browsers.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("$BROWSER names ", browsers[0],
                                                      ", which is not there; set it to another "
                                                      "program, or open ",
                                                      path, " yourself"));
  }
  if (Of(environment("DISPLAY")).empty() && Of(environment("WAYLAND_DISPLAY")).empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no display to show ", path,
                     " on; copy it to a machine that has one, or set $BROWSER"));
  }
  const std::string program = FindProgram("xdg-open", directories);
  if (program.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("xdg-open is not installed, which would show ", path,
                     "; `apt-get install xdg-utils`, or set $BROWSER"));
  }
  return Start(program, path);
}

}  // namespace lengthwise::client
