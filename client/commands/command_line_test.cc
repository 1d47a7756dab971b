// Completion and manual pages of the whole command line.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/commands/program.h"
#include "command_line/completion.h"
#include "command_line/description.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"

namespace lengthwise::client {
namespace {

using command_line::Candidate;
using command_line::CommandDescription;
using command_line::OptionDescription;
using command_line::ValueKind;

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() : program_(unused_, unused_) {
    Collect(DefineCommandLine(program_).root().Describe());
  }

  void Collect(const CommandDescription& command) {
    commands_.push_back(command);
    for (const CommandDescription& one : command.commands) Collect(one);
  }

  std::ostringstream unused_;
  Program program_;
  std::vector<CommandDescription> commands_;
};

TEST_F(CommandLineTest, CompletionKnowsTheKindOfEveryValue) {
  int values = 0;
  for (const CommandDescription& command : commands_) {
    for (const OptionDescription& option : command.options) {
      EXPECT_NE(KindOf(command.full_name, option), ValueKind::kUnknown)
          << command.full_name << " " << option.names[0] << " " << option.value
          << ": add its kind to KindOf";
      values += option.takes_value;
    }
  }
  EXPECT_GT(values, 100);
}

TEST_F(CommandLineTest, CompletionOffersEveryCommandAndOption) {
  for (const CommandDescription& command : commands_) {
    std::vector<std::string> words;
    std::istringstream path(command.full_name);
    for (std::string word; path >> word;) words.push_back(word);
    words.erase(words.begin());
    words.push_back("--");
    std::vector<std::string> offered;
    for (const Candidate& candidate : Complete(commands_[0], words).candidates) {
      offered.push_back(candidate.text);
    }
    for (const OptionDescription& option : command.options) {
      if (option.positional) continue;
      EXPECT_THAT(offered, testing::Contains(option.names[0]));
    }
  }
}

TEST_F(CommandLineTest, EveryOptionHasADescription) {
  for (const CommandDescription& command : commands_) {
    EXPECT_NE(command.help, "") << command.full_name;
    for (const OptionDescription& option : command.options) {
      EXPECT_NE(option.help, "") << command.full_name << " " << option.names[0];
    }
  }
}

// man prints groff's warnings about unknown requests.
TEST_F(CommandLineTest, ManRendersEveryPageWithoutWarning) {
  if (!platform::ChildProcess::Run({"man", "--version"}, absl::Seconds(60)).ok()) {
    GTEST_SKIP() << "man is not installed; tests/run.sh installs it";
  }
  for (const CommandDescription& command : commands_) {
    const std::string path = absl::StrCat(testing::TempDir(), "/", ManualPageName(command), ".1");
    std::ofstream(path) << ManualPage(command, "0.1.0");
    FILE* man = popen(
        absl::StrCat("LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l '", path, "' 2>&1 >/dev/null")
            .c_str(),
        "r");
    ASSERT_NE(man, nullptr);
    std::string warnings;
    for (int byte = fgetc(man); byte != EOF; byte = fgetc(man)) {
      warnings += static_cast<char>(byte);
    }
    EXPECT_EQ(pclose(man), 0) << path;
    EXPECT_EQ(warnings, "") << path;
  }
}

}  // namespace
}  // namespace lengthwise::client
