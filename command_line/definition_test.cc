#include "command_line/definition.h"

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::command_line {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// lengthwise draw EXPERIMENT... [--width W] [--noise A,B] [--task T], lengthwise workers up
// [ARG...]
class DefinitionTest : public testing::Test {
 protected:
  DefinitionTest() : line_("lengthwise", "Draws") {
    const Command root = line_.root().RequireCommand();
    const Command draw =
        root.AddCommand("draw", "Draws results").OnChosen([this] { chosen_ += "draw "; });
    draw.AddOption("experiments", experiments_, "Which");
    draw.AddOption("--pixel_width W", width_, "Width").Range(1, 9);
    draw.AddOption("--noise LIST", noise_, "Noise").SeparatedBy(',');
    draw.AddOption("--task NAME", tasks_, "Tasks").OneByOne();
    draw.AddOption("-o,--out FILE", out_, "Picture");
    const Command workers =
        root.AddCommand("workers", "Lists workers").OnChosen([this] { chosen_ += "workers "; });
    const Command up =
        workers.AddCommand("up", "Starts workers").OnChosen([this] { chosen_ += "up "; });
    up.AddOption("[arguments]", arguments_, "Of another program");
  }

  // Returns the mistake that Parse explains; empty without one.
  std::string Mistake(const std::vector<std::string>& arguments) {
    return std::string(line_.Parse(arguments).status().message());
  }

  CommandLine line_;
  std::string chosen_;
  std::vector<std::string> experiments_, tasks_, arguments_;
  std::optional<int32_t> width_;
  std::vector<double> noise_;
  std::string out_;
};

TEST_F(DefinitionTest, ParseSetsVariables) {
  EXPECT_EQ(Mistake({"draw", "--noise", "0.5,1", "a", "b", "--task", "x", "c", "--task=y"}), "");
  EXPECT_EQ(chosen_, "draw ");
  EXPECT_THAT(experiments_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(tasks_, ElementsAre("x", "y"));
  EXPECT_THAT(noise_, ElementsAre(0.5, 1));
  EXPECT_FALSE(width_.has_value());
}

TEST_F(DefinitionTest, GivenHasWhatHasNoVariable) {
  CommandLine line("lengthwise", "Draws");
  bool in_terminal = false;
  const Command root = line.root();
  root.AddOption<std::vector<std::string>>("[experiments]", "Which");
  root.AddOption("-o,--out FILE", "File");
  root.AddOption<int32_t>("--width W", "Width").Positive();
  root.AddOption<std::vector<std::string>>("--task NAME", "Tasks").OneByOne();
  root.AddFlag("--open", "Show it");
  root.AddFlag("--plain", "Without title");
  root.AddFlag("--terminal", in_terminal, "Here");
  ASSERT_TRUE(line.Parse({"-o", "a b", "e-1", "--task=-x", "--task", "y", "--open", "--terminal",
                          "--width", "5", "e-2"})
                  .ok());
  EXPECT_THAT(root.Given(), ElementsAre("--out=a b", "--width=5", "--task=-x", "--task=y", "--open",
                                        "--", "e-1", "e-2"));
  EXPECT_TRUE(in_terminal);
  EXPECT_THAT(std::string(line.Parse({"--width", "x"}).status().message()),
              HasSubstr("--width: got \"x\", expected a number above 0"));
  ASSERT_TRUE(line.Parse({"--plain"}).ok());
  EXPECT_THAT(root.Given(), ElementsAre("--plain"));
}

TEST_F(DefinitionTest, OnlyTheLastCommandIsChosen) {
  EXPECT_EQ(Mistake({"workers", "up"}), "");
  EXPECT_EQ(chosen_, "up ");
  EXPECT_EQ(Mistake({"workers"}), "");
  EXPECT_EQ(chosen_, "up workers ");
}

TEST_F(DefinitionTest, ReadsDashesInNamesOfOptionsOnly) {
  EXPECT_EQ(Mistake({"draw", "a-b", "--pixel-width=3"}), "");
  EXPECT_EQ(width_, 3);
  EXPECT_THAT(experiments_, ElementsAre("a-b"));
  EXPECT_EQ(Mistake({"workers", "up", "--", "--job-name"}), "");
  EXPECT_THAT(arguments_, ElementsAre("--job-name"));
}

TEST_F(DefinitionTest, HomeDirectoryIsExpandedInPathsOnly) {
  setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(Mistake({"draw", "~/a", "--task", "~/b", "--out=~/c.svg"}), "");
  EXPECT_EQ(out_, "/home/ada/c.svg");
  EXPECT_THAT(tasks_, ElementsAre("~/b"));
  EXPECT_EQ(Mistake({"draw", "a", "-o", "~bea/c.svg"}), "");
  EXPECT_EQ(out_, "~bea/c.svg");
}

TEST_F(DefinitionTest, ExplainsMistakes) {
  EXPECT_EQ(Mistake({"darw"}),
            "unknown command \"darw\"; did you mean \"draw\"?; see `lengthwise --help`");
  EXPECT_EQ(Mistake({"draw"}), "EXPERIMENTS is missing: Which; see `lengthwise draw --help`");
  EXPECT_EQ(Mistake({"draw", "a", "--pixel-width", "10"}),
            "--pixel_width: got \"10\", expected a number from 1 to 9; see `lengthwise draw "
            "--help`");
  EXPECT_EQ(Mistake({"draw", "a", "--pixel-width", "\x1b[31m"}),
            "--pixel_width: got \"\\x1b[31m\", expected a number from 1 to 9; see `lengthwise draw "
            "--help`");
  EXPECT_EQ(chosen_, "");
}

TEST_F(DefinitionTest, HelpAndVersionAreTexts) {
  EXPECT_THAT(line_.Help(), HasSubstr("Lists workers"));
  line_.SetVersion([] { return "lengthwise 7"; }, "Prints the version");
  EXPECT_EQ(*line_.Parse({"--version"}), "lengthwise 7\n");
  const std::string help = *line_.Parse({"draw", "--help"});
  EXPECT_THAT(help, HasSubstr("--pixel_width W:INT in [1 - 9]"));
  EXPECT_EQ(*line_.Parse({"help", "draw"}), help);
  EXPECT_EQ(chosen_, "");
}

}  // namespace
}  // namespace lengthwise::command_line
