// Programs of other people that tests of this folder ask.
#ifndef LENGTHWISE_TESTS_MONITORING_COMMAND_H_
#define LENGTHWISE_TESTS_MONITORING_COMMAND_H_

#include <string>
#include <vector>

namespace lengthwise::monitoring_test {

// The path of a program in the usual places, or nothing.
std::string FindProgram(const std::string& name);

struct CommandResult {
  bool ok = false;     // ended with 0
  std::string output;  // and what went to stderr
};

// Runs a command to its end, which is waited for as long as for anything in these tests. Not for
// two threads at once.
CommandResult RunCommand(const std::vector<std::string>& arguments);

// The whole file; fails the test where it cannot be read.
std::string ReadText(const std::string& path);

// The words behind any of these beginnings of lines.
std::vector<std::string> NamesBehind(const std::string& text,
                                     const std::vector<std::string>& beginnings);

}  // namespace lengthwise::monitoring_test

#endif  // LENGTHWISE_TESTS_MONITORING_COMMAND_H_
