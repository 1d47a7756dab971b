// Real shells complete command lines: checks the line after Tab was pressed.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/connection/testing/real_server.h"
#include "client/display/testing/pseudo_terminal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"

namespace lengthwise::client {
namespace {

constexpr absl::string_view kZsh = "zsh";

using ::testing::HasSubstr;

constexpr char kProgram[] = "client/lengthwise";
constexpr absl::Duration kShellDeadline = absl::Seconds(20);

bool IsInstalled(const std::string& shell) {
  return platform::ChildProcess::Run({shell, "--version"}, absl::Seconds(60)).ok();
}

struct Shell {
  std::string name;
  // Distinguishes shells of the same name.
  std::string loading;
  std::vector<std::string> arguments;
  // Prepares the shell: disables the user's prompt and loads the completion.
  std::string setup;
};

class ShellsTest : public testing::TestWithParam<Shell> {
 protected:
  void SetUp() override {
    if (!IsInstalled(GetParam().name)) {
      GTEST_SKIP() << GetParam().name << " is not installed; tests/run.sh installs it";
    }
    server_.Submit("figure6", {"none", "sin_cos"});
    server_.Submit("table1", {"none"});
    directory_ = absl::StrCat(testing::TempDir(), "/", GetParam().name, GetParam().loading);
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/my-spec.yaml") << "name: e\n";
    const std::string program = std::filesystem::current_path() / kProgram;
    std::filesystem::create_symlink(program, directory_ + "/lengthwise");
    terminal_.emplace(GetParam().arguments,
                      std::vector<std::pair<std::string, std::string>>{
                          {"HOME", directory_},
                          {"PATH", absl::StrCat(directory_, ":", std::getenv("PATH"))},
                          {"TERM", "xterm"},
                          {"INPUTRC", "/dev/null"},
                          {"LENGTHWISE_CONFIG", ""},
                          {"LENGTHWISE_SERVER", server_.address()}},
                      TerminalSize{.width = 200, .height = 50});
    terminal_->Type(
        absl::StrCat("cd ", directory_, "\n", GetParam().setup, "\necho rea''dy-to-complete\n"));
    // The quotes keep the echo of the command from matching.
    ASSERT_TRUE(terminal_->ReadUntil("ready-to-complete\r\n", kShellDeadline).has_value())
        << terminal_->unread();
  }

  // Types, presses Tab and returns the resulting line.
  std::string Complete(const std::string& typed) {
    const std::string end = absl::StrCat("end-of-line-", ++lines_);
    // Ctrl-A goes to the line's beginning, Ctrl-E to its end.
    terminal_->Type(typed + "\t");
    // The shell is busy until it echoes the next input.
    terminal_->Type(
        "\x01"
        "echo '<'\x05'>' " +
        end + "\n");
    const auto read = terminal_->ReadUntil("> " + end + "\r\n", kShellDeadline);
    if (!read.has_value()) return "no answer: " + terminal_->unread();
    const size_t begin = read->rfind('<');
    const std::string line = read->substr(begin + 1, read->rfind("> " + end) - begin - 1);
    return GetParam().name == kZsh ? std::string(absl::StripTrailingAsciiWhitespace(line)) : line;
  }

  // Returns the line after completion to a whole word. Shells add a space, which zsh removes again
  // if the next typed character does not need it.
  static std::string Whole(const std::string& line) {
    return GetParam().name == kZsh ? line : line + " ";
  }

  RealServer server_;
  std::string directory_;
  std::optional<PseudoTerminal> terminal_;
  int lines_ = 0;
};

TEST_P(ShellsTest, CompletesCommandsOptionsAndNames) {
  EXPECT_EQ(Complete("lengthwise wat"), Whole("lengthwise watch"));
  EXPECT_EQ(Complete("lengthwise auth who"), Whole("lengthwise auth whoami"));
  EXPECT_EQ(Complete("lengthwise watch --unt"), Whole("lengthwise watch --until"));
  EXPECT_EQ(Complete("lengthwise watch --until run"), Whole("lengthwise watch --until running"));
  EXPECT_EQ(Complete("lengthwise watch --until=run"), Whole("lengthwise watch --until=running"));
  EXPECT_EQ(Complete("lengthwise tasks latin"), Whole("lengthwise tasks latin_square"));
  EXPECT_EQ(Complete("lengthwise plot table1-1 --figure accuracy_by"),
            Whole("lengthwise plot table1-1 --figure accuracy_by_length"));
}

TEST_P(ShellsTest, CompletesNamesFromTheServer) {
  EXPECT_EQ(Complete("lengthwise watch fig"), Whole("lengthwise watch figure6-1"));
  // No space, because the trial follows.
  EXPECT_EQ(Complete("lengthwise logs tab"), "lengthwise logs table1-1/");
  EXPECT_EQ(Complete("lengthwise logs table1-1/"), Whole("lengthwise logs table1-1/0"));
}

TEST_P(ShellsTest, CompletesFiles) {
  EXPECT_EQ(Complete("lengthwise submit my-"), Whole("lengthwise submit my-spec.yaml"));
}

TEST_P(ShellsTest, IsSilentWithoutAServer) {
  terminal_->Type(GetParam().name == "fish" ? "set -x LENGTHWISE_SERVER 127.0.0.1:1\n"
                                            : "export LENGTHWISE_SERVER=127.0.0.1:1\n");
  EXPECT_EQ(Complete("lengthwise watch fig"), "lengthwise watch fig");
}

INSTANTIATE_TEST_SUITE_P(
    Shells, ShellsTest,
    testing::Values(
        Shell{
            .name = "bash",
            .loading = "",
            .arguments = {"bash", "--norc", "--noprofile", "-i"},
            .setup = "PS1='$ '; bind 'set bell-style none'; source <(lengthwise completion bash)"},
        Shell{.name = "zsh",
              .loading = "",
              .arguments = {"zsh", "-f", "-i"},
              .setup = "PS1='$ '; bindkey -e; unsetopt beep; autoload -U compinit; compinit -u -D; "
                       "source <(lengthwise completion zsh)"},
        // As in the help of `completion`. The first Tab loads the completion and completes.
        Shell{.name = "zsh",
              .loading = "Autoloaded",
              .arguments = {"zsh", "-f", "-i"},
              .setup = "PS1='$ '; bindkey -e; unsetopt beep; mkdir ~/.zfunc; lengthwise completion "
                       "zsh > ~/.zfunc/_lengthwise; fpath+=~/.zfunc; autoload -U compinit; "
                       "compinit -u -D"}),
    [](const testing::TestParamInfo<Shell>& shell) {
      return absl::StrCat(shell.param.name, shell.param.loading);
    });

// fish completes for scripts, too.
TEST(FishTest, CompletesCommandsOptionsAndNames) {
  if (!IsInstalled("fish")) {
    GTEST_SKIP() << "fish is not installed; tests/run.sh installs it";
  }
  RealServer server;
  server.Submit("figure6", {"none"});
  const std::string directory = testing::TempDir() + "/fish";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/my-spec.yaml") << "name: e\n";
  std::filesystem::create_symlink(std::filesystem::current_path() / kProgram,
                                  directory + "/lengthwise");
  const auto complete = [&](const std::string& line) {
    PseudoTerminal fish(
        {"fish", "--no-config", "-c",
         absl::StrCat("cd ", directory, "; lengthwise completion fish | source; complete -C '",
                      line, "'; echo end-of-list")},
        {{"HOME", directory},
         {"TERM", "dumb"},
         {"PATH", absl::StrCat(directory, ":", std::getenv("PATH"))},
         {"LENGTHWISE_CONFIG", ""},
         {"LENGTHWISE_SERVER", server.address()}},
        {.width = 200, .height = 50});
    const auto read = fish.ReadUntil("end-of-list", kShellDeadline);
    return absl::StrReplaceAll(read.value_or("no answer: " + fish.unread()), {{"\r", ""}});
  };
  EXPECT_EQ(complete("lengthwise wat"), "watch\tShows an experiment live\nend-of-list");
  EXPECT_EQ(complete("lengthwise watch --until run"), "running\nend-of-list");
  EXPECT_EQ(complete("lengthwise watch --until=run"), "--until=running\nend-of-list");
  EXPECT_EQ(complete("lengthwise watch fig"), "figure6-1\t1 queued\nend-of-list");
  EXPECT_EQ(complete("lengthwise logs figure6-1/"),
            "figure6-1/0\tbucket_sort-encoder-none-lr0.001-seed0\n"
            "end-of-list");
  EXPECT_THAT(complete("lengthwise submit my-"), HasSubstr("my-spec.yaml"));
}

}  // namespace
}  // namespace lengthwise::client
