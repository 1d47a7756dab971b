// `lengthwise web`: shows experiments in a browser.
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/python_program.h"
#include "client/connection/private_service.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<int> RunWeb(Program& program) {
  program.ChooseDirectoryToRead();
  if (program.data_dir.empty()) return program.RunPython(program.Given({"web"}));
  // The page outlives the server of a run: Python asks it, and then its own.
  ASSIGN_OR_RETURN(const std::string server,
                   FindProgram("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY"));
  setenv("LENGTHWISE_SERVER_BINARY", server.c_str(), 1);
  return program.RunPython(program.Given({"web", absl::StrCat("--data_dir=", program.data_dir)}),
                           /*asks_server=*/false);
}

}  // namespace

absl::StatusOr<std::unique_ptr<platform::ChildProcess>> StartWeb(Program& program,
                                                                 const std::string& server,
                                                                 const std::string& experiment) {
  std::string address;
  ASSIGN_OR_RETURN(auto page, StartPython({"web", absl::StrCat("--show=", experiment)},
                                          {.server = server}, address));
  // What follows the address is about Ctrl-C, which here ends the run.
  (program.output_is_table() ? program.out() : program.err())
      << address.substr(0, address.find(' ')) << "    read-only; ends with the run\n"
      << std::flush;
  return page;
}

void AddWeb(Command root, Program& program) {
  AddPythonCommand(root, program, "web", [&program] { return RunWeb(program); });
}

}  // namespace lengthwise::client
