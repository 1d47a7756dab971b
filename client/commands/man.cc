// `lengthwise man [COMMAND]`: manual pages, generated from the definition of the command line.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "client/commands/commands.h"
#include "command_line/description.h"
#include "platform/child_process.h"
#include "platform/files.h"
#include "platform/status_macros.h"
#include "platform/version.h"

namespace lengthwise::client {
namespace {

using command_line::CommandDescription;

struct ManOptions {
  std::vector<std::string> command;
  std::string out;
};

absl::StatusOr<const CommandDescription*> Find(const CommandDescription& program,
                                               const std::vector<std::string>& path) {
  const CommandDescription* command = &program;
  for (const std::string& name : path) {
    const CommandDescription* next = nullptr;
    std::vector<std::string> names;
    for (const CommandDescription& one : command->commands) {
      if (one.name == name) next = &one;
      names.push_back(one.name);
    }
    if (next == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("there is no command \"", command->full_name,
                                                     " ", name, "\"",
                                                     catalogue::Suggestion(name, names)));
    }
    command = next;
  }
  return command;
}

absl::Status WriteAll(const CommandDescription& command, const std::string& directory, int& count) {
  const std::string path = absl::StrCat(directory, "/", ManualPageName(command), ".1");
  errno = 0;
  std::ofstream page(path, std::ios::binary);
  page << ManualPage(command, platform::kVersion);
  page.close();
  // Never UNAVAILABLE, which says that the server is unreachable.
  if (!page.good()) {
    return absl::FailedPreconditionError(
        platform::FileError(errno == 0 ? EIO : errno, "write", path).message());
  }
  ++count;
  for (const CommandDescription& one : command.commands) {
    RETURN_IF_ERROR(WriteAll(one, directory, count));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Man(Command root, Program& program, const ManOptions& options) {
  const CommandDescription whole = root.Describe();
  if (!options.out.empty()) {
    if (!options.command.empty()) {
      return absl::InvalidArgumentError(
          "--out writes the pages of all commands; leave out the command");
    }
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    int count = 0;
    RETURN_IF_ERROR(WriteAll(whole, options.out, count));
    program.out() << "Wrote " << count << " pages to " << options.out << "\n";
    return kSuccess;
  }
  ASSIGN_OR_RETURN(const auto command, Find(whole, options.command));
  const std::string page = ManualPage(*command, platform::kVersion);
  constexpr absl::Duration kPatience = absl::Seconds(5);
  if (!program.is_terminal || !platform::ChildProcess::Run({"man", "--version"}, kPatience).ok()) {
    program.out() << page;
    return kSuccess;
  }
  FILE* man = popen("man -l -", "w");
  if (man == nullptr) return absl::InternalError("cannot start man");
  fputs(page.c_str(), man);
  pclose(man);
  return kSuccess;
}

}  // namespace

void AddMan(Command root, Program& program) {
  auto options = std::make_shared<ManOptions>();
  const Command command = program.AddCommand(
      root, "man", "Shows the manual page of a command", kOfflineGroup,
      "lengthwise man watch\n"
      "lengthwise man auth create-token\n"
      "lengthwise man --out ~/.local/share/man/man1    # for `man lengthwise-watch`; all users: "
      "/usr/local/share/man/man1",
      [root, &program, options] { return Man(root, program, *options); });
  command.AddOption("[command]", options->command,
                    "Command to explain; default: the program itself");
  command.AddOption("--out DIR", options->out,
                    "Writes the pages of all commands to this directory");
}

}  // namespace lengthwise::client
