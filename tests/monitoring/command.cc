#include "tests/monitoring/command.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::monitoring_test {

std::string FindProgram(const std::string& name) {
  for (const char* directory : {"/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/sbin/"}) {
    const std::string path = directory + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

CommandResult RunCommand(const std::vector<std::string>& arguments) {
  const std::string output = testing::TempDir() + "/command_output";
  std::remove(output.c_str());
  auto process = platform::ChildProcess::Start({.arguments = arguments, .output_file = output});
  if (!process.ok()) return {.ok = false, .output = process.status().ToString()};
  const auto exit = (*process)->WaitFor(end_to_end::kDeadline);
  return {.ok = exit.has_value() && exit->ok(), .output = ReadText(output)};
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> NamesBehind(const std::string& text,
                                     const std::vector<std::string>& beginnings) {
  std::vector<std::string> names;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    for (const std::string& beginning : beginnings) {
      if (absl::ConsumePrefix(&line, beginning)) names.emplace_back(line);
    }
  }
  return names;
}

}  // namespace lengthwise::monitoring_test
