#include "command_line/completion.h"

#include "command_line/definition.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::command_line {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// lengthwise watch EXPERIMENT [--until done|running] [--from N] [--quiet]; lengthwise auth whoami.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() : line_("lengthwise", "") {
    const Command root = line_.root();
    const Command watch = root.AddCommand("watch", "Shows an experiment live. Really");
    watch.AddOption("[experiment]", text_, "Its name");
    watch.AddOption("--until STATE", text_, "When it ends").OneOf({"done", "running"});
    watch.AddOption("--from_event N", number_, "First event; default the first");
    watch.AddFlag("-q,--quiet", flag_, "Says less");
    root.AddCommand("workers", "Lists workers");
    root.AddCommand("auth", "Tokens").AddCommand("whoami", "Says who you are");
    const Command plot = root.AddCommand("plot", "Draws");
    plot.AddOption("[experiments]", texts_, "Which");
    plot.AddOption("-o,--out FILE", text_, "The picture");
    plot.AddOption("--odd THING", text_, "Nobody knows what");
  }

  std::vector<std::string> Words(const std::vector<std::string>& words) {
    std::vector<std::string> texts;
    for (const Candidate& candidate : Complete(line_.root().Describe(), words).candidates) {
      texts.push_back(candidate.text);
    }
    return texts;
  }
  ValueKind Kind(const std::vector<std::string>& words) {
    return Complete(line_.root().Describe(), words).kind;
  }

  CommandLine line_;
  std::string text_;
  std::vector<std::string> texts_;
  int number_ = 0;
  bool flag_ = false;
};

TEST_F(CompletionTest, CompletesCommands) {
  EXPECT_THAT(Words({"wa"}), ElementsAre("watch"));
  EXPECT_THAT(Words({"w"}), ElementsAre("watch", "workers"));
  EXPECT_THAT(Words({""}), ElementsAre("watch", "workers", "auth", "plot"));
  EXPECT_THAT(Words({"auth", "w"}), ElementsAre("whoami"));
  EXPECT_THAT(Words({"sumbit", ""}), IsEmpty());
  EXPECT_EQ(Complete(line_.root().Describe(), {"wa"}).candidates[0].help,
            "Shows an experiment live");
}

TEST_F(CompletionTest, CompletesOptionsAndTheirChoices) {
  EXPECT_THAT(Words({"watch", "--"}), ElementsAre("--help", "--until", "--from_event", "--quiet"));
  EXPECT_THAT(Words({"watch", "e-1", "--un"}), ElementsAre("--until"));
  EXPECT_THAT(Words({"watch", "--from-ev"}),
              ElementsAre("--from_event"));  // as the program reads it
  EXPECT_THAT(Words({"watch", "--until", ""}), ElementsAre("done", "running"));
  EXPECT_THAT(Words({"watch", "--until", "r"}), ElementsAre("running"));
  EXPECT_THAT(Words({"watch", "--until=r"}), ElementsAre("--until=running"));
  EXPECT_THAT(Words({"watch", "--quiet=r"}), IsEmpty());
}

TEST_F(CompletionTest, ReportsTheKindOfName) {
  EXPECT_EQ(Kind({"watch", ""}), ValueKind::kExperiment);
  EXPECT_EQ(Kind({"watch", "--quiet", ""}), ValueKind::kExperiment);
  EXPECT_EQ(Kind({"watch", "--from_event", "3", ""}), ValueKind::kExperiment);
  EXPECT_EQ(Kind({"watch", "--from_event", ""}), ValueKind::kFree);
  EXPECT_EQ(Kind({"plot", "a-1", "b-1", ""}), ValueKind::kExperimentOrTrial);
  EXPECT_EQ(Kind({"plot", "-o", ""}), ValueKind::kFile);
  EXPECT_EQ(Kind({"plot", "--out="}), ValueKind::kFile);
  EXPECT_EQ(Kind({"plot", "--odd", ""}), ValueKind::kUnknown);
}

TEST_F(CompletionTest, OffersOptionsAfterAllArguments) {
  EXPECT_THAT(Words({"watch", "e-1", ""}),
              ElementsAre("--help", "--until", "--from_event", "--quiet"));
  EXPECT_THAT(Words({"watch", "e-1", "--", "--un"}), IsEmpty());
}

TEST_F(CompletionTest, ReportsValuesOfEarlierOptions) {
  EXPECT_THAT(
      Complete(line_.root().Describe(), {"watch", "--until=done", "--from-event", "3", ""}).given,
      ElementsAre(Pair("--from_event", "3"), Pair("--until", "done")));
}

}  // namespace
}  // namespace lengthwise::command_line
