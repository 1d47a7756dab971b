// Runs third-party programs for the tests of this folder.
#ifndef LENGTHWISE_TESTS_MONITORING_COMMAND_H_
#define LENGTHWISE_TESTS_MONITORING_COMMAND_H_

#include <string>
#include <vector>

namespace lengthwise::monitoring_test {

// Returns the path of a program in the system's program directories; empty if it is not installed.
std::string FindProgram(const std::string& name);

struct CommandResult {
  bool ok = false;     // exited with 0
  std::string output;  // stdout and stderr
};

// Runs a command until it exits, for at most end_to_end::kDeadline. Not thread-safe.
CommandResult RunCommand(const std::vector<std::string>& arguments);

// Reads the whole file. Fails the test if it cannot be read.
std::string ReadText(const std::string& path);

// Returns the rest of each line that starts with one of `beginnings`, without surrounding spaces.
std::vector<std::string> NamesBehind(const std::string& text,
                                     const std::vector<std::string>& beginnings);

}  // namespace lengthwise::monitoring_test

#endif  // LENGTHWISE_TESTS_MONITORING_COMMAND_H_
