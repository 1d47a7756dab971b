// The Python half of the command line: what is drawn, analysed and compared is done by the package
// `lengthwise` (python/), which this starts.
#ifndef LENGTHWISE_CLIENT_COMMANDS_PYTHON_PROGRAM_H_
#define LENGTHWISE_CLIENT_COMMANDS_PYTHON_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rpc/channel.h"

namespace lengthwise::client {

// The interpreter of an environment that has the package:
//  1. $LENGTHWISE_PYTHON, where it is set, as a wheel's `lengthwise` does (programs.py of python/);
//  2. python/bin/python beside this program, or in ../lib/lengthwise as deploy/collect.sh lays it
//     out;
//  3. ${XDG_CACHE_HOME:-~/.cache}/lengthwise/python/bin/python, which deploy/install.sh makes.
// NOT_FOUND says what to run.
absl::StatusOr<std::string> FindPython();

// Takes what the program writes, as it comes.
using TakeText = std::function<void(absl::string_view)>;

// Runs `python -m lengthwise ARGUMENTS --server ...` and waits for its end. It reaches the server
// as `channel` says, and nothing of the environment or the configuration file changes that; where
// it needs the program `lengthwise`, it runs the caller (LENGTHWISE_CLIENT_BINARY). Returns its
// exit code, which has the meanings of ExitCode. Errors: those of FindPython; INTERNAL where it was
// killed. Signals that end this program go to it, which cleans up; then this returns its code.
absl::StatusOr<int> RunPython(const std::vector<std::string>& arguments,
                              const rpc::ChannelOptions& channel, const TakeText& out,
                              const TakeText& err);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_PYTHON_PROGRAM_H_
