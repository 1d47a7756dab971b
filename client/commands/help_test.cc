#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandsTest, EveryCommandHasHelpWithAnExample) {
  EXPECT_EQ(Run({"--help"}), kSuccess);
  for (const std::string command :
       {"run",        "validate",  "check",     "sample",   "tasks",  "encodings", "networks",
        "optimizers", "schedules", "protocols", "submit",   "watch",  "results",   "compare",
        "attention",  "errors",    "predict",   "evaluate", "extend", "list",      "show",
        "cancel",     "retry",     "delete",    "workers",  "logs",   "storage",   "backup",
        "auth",       "config",    "plot",      "report",   "doctor", "man",       "completion",
        "export",     "analyze",   "web",       "publish",  "queue",  "hand-over"}) {
    EXPECT_THAT(out_, HasSubstr("\n  " + command + " "));
    std::ostringstream out;
    Program program(out, out);
    EXPECT_EQ(Main({command, "--help"}, program), kSuccess);
    EXPECT_THAT(out.str(), HasSubstr("Examples:\n  lengthwise " + command)) << command;
  }
}

TEST_F(CommandsTest, HelpIsAlsoACommand) {
  ASSERT_EQ(Run({"watch", "--help"}), kSuccess);
  const std::string help = out_;
  EXPECT_EQ(Run({"help", "watch"}), kSuccess);
  EXPECT_EQ(out_, help);
  EXPECT_EQ(Run({"help"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("explains a command"));
}

TEST_F(CommandsTest, ManualPageHasEveryOption) {
  EXPECT_EQ(Run({"man", "plot"}), kSuccess);
  EXPECT_THAT(out_, StartsWith(".TH \"LENGTHWISE-PLOT\" 1"));
  const std::string page = out_;
  EXPECT_EQ(Run({"plot", "--help"}), kSuccess);
  const std::regex option("\n  (-\\w,)?--(\\w+)");
  int options = 0;
  for (std::sregex_iterator match(out_.begin(), out_.end(), option), end; match != end; ++match) {
    const std::string name = match->str(2);
    EXPECT_THAT(page, HasSubstr("\n\\fB\\-\\-" + name)) << name;
    ++options;
  }
  EXPECT_GT(options, 30);
  EXPECT_EQ(Run({"man", "auth", "create-token"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("lengthwise\\-auth\\-create\\-token"));
  EXPECT_EQ(Run({"man", "wach"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("no command \"lengthwise wach\"; did you mean \"watch\"?"));
}

// Manual pages are generated once and installed for all users.
TEST_F(CommandsTest, ManualPagesDoNotNameTheBuildersHome) {
  const std::string home = testing::TempDir() + "/home-of-the-builder";
  const std::string old = getenv("HOME") == nullptr ? "" : getenv("HOME");
  setenv("HOME", home.c_str(), 1);
  unsetenv("XDG_DATA_HOME");
  const std::string directory = testing::TempDir() + "/man1-of-a-home";
  EXPECT_EQ(Run({"man", "--out", directory}), kSuccess) << err_;
  setenv("HOME", old.c_str(), 1);
  for (const auto& page : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(page.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_THAT(text, Not(HasSubstr("home-of-the-builder"))) << page.path();
  }
  EXPECT_EQ(Run({"man", "run"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("~/.local/share/lengthwise/runs"));
}

TEST_F(CommandsTest, WritesAllManualPagesToADirectory) {
  const std::string directory = testing::TempDir() + "/man1";
  EXPECT_EQ(Run({"man", "--out", directory}), kSuccess) << err_;
  for (const char* page : {"lengthwise", "lengthwise-watch", "lengthwise-auth-whoami"}) {
    EXPECT_TRUE(std::ifstream(absl::StrCat(directory, "/", page, ".1")).good()) << page;
  }
}

}  // namespace
}  // namespace lengthwise::client
