// Starts the Python package `lengthwise` (python/), the half of the command line that draws,
// analyzes, exports and compares.
#ifndef LENGTHWISE_CLIENT_COMMANDS_PYTHON_PROGRAM_H_
#define LENGTHWISE_CLIENT_COMMANDS_PYTHON_PROGRAM_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/child_process.h"
#include "rpc/channel.h"

namespace lengthwise::client {

// Returns the interpreter of an environment that has the package, the first found of:
//  1. $LENGTHWISE_PYTHON, if set. A wheel's `lengthwise` sets it (programs.py of python/).
//  2. python/bin/python beside this program, or in ../lib/lengthwise, the layout of
//     deploy/collect.sh.
//  3. ${XDG_CACHE_HOME:-~/.cache}/lengthwise/python/bin/python, which deploy/install.sh creates.
//  4. bin/python3 of the active environment ($VIRTUAL_ENV, $CONDA_PREFIX), if it has the package.
//     Last, because its package may be of another version than this program.
// NOT_FOUND says which command creates it.
absl::StatusOr<std::string> FindPython();

// python/lengthwise/commands/definitions.json, which the build embeds in the program.
extern const char kPythonCommands[];

// Runs `python -m lengthwise ARGUMENTS --server ...`, passes its output on as it comes, waits for
// its end and returns its exit code, an ExitCode. The package reaches the server through `channel`,
// whatever the environment and the configuration file say. The user's settings of Python and
// Matplotlib ($PYTHONWARNINGS, $MPLBACKEND) do not apply, but $PYTHONPATH and its like do to a
// Python that $LENGTHWISE_PYTHON names. If it needs the program `lengthwise`, it runs the caller
// (LENGTHWISE_CLIENT_BINARY). Termination signals are forwarded to it, so that it can clean up.
// Errors: those of FindPython; INTERNAL if it was killed.
absl::StatusOr<int> RunPython(const std::vector<std::string>& arguments,
                              const rpc::ChannelOptions& channel, std::ostream& out,
                              std::ostream& err);

// Starts the same in the background, where Ctrl-C does not reach it, and waits for the first line
// of its output. It ends with this process; its errors go to standard error. Errors: those of
// FindPython; FAILED_PRECONDITION if it ended without a line.
absl::StatusOr<std::unique_ptr<platform::ChildProcess>> StartPython(
    const std::vector<std::string>& arguments, const rpc::ChannelOptions& channel,
    std::string& first_line);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_PYTHON_PROGRAM_H_
