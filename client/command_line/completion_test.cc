#include "client/command_line/completion.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// lengthwise watch EXPERIMENT [--until done|running] [--from N] [--quiet]; lengthwise auth whoami.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() : app_("", "lengthwise") {
    CLI::App* watch = app_.add_subcommand("watch", "Shows an experiment live. Really");
    watch->add_option("experiment", text_, "Its name")->type_name("");
    watch->add_option("--until", text_, "When it ends")
        ->check(CLI::IsMember({"done", "running"}))
        ->type_name("STATE");
    watch->add_option("--from_event", number_, "First event; default the first")->type_name("N");
    watch->add_flag("-q,--quiet", flag_, "Says less");
    app_.add_subcommand("workers", "Lists workers");
    app_.add_subcommand("auth", "Tokens")->add_subcommand("whoami", "Says who you are");
    CLI::App* plot = app_.add_subcommand("plot", "Draws");
    plot->add_option("experiments", texts_, "Which")->type_name("");
    plot->add_option("-o,--out", text_, "The picture")->type_name("FILE");
    plot->add_option("--odd", text_, "Nobody knows what")->type_name("THING");
  }

  std::vector<std::string> Words(const std::vector<std::string>& words) {
    std::vector<std::string> texts;
    for (const Candidate& candidate : Complete(Describe(app_), words).candidates) {
      texts.push_back(candidate.text);
    }
    return texts;
  }
  ValueKind Kind(const std::vector<std::string>& words) {
    return Complete(Describe(app_), words).kind;
  }

  CLI::App app_;
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
  EXPECT_EQ(Complete(Describe(app_), {"wa"}).candidates[0].help, "Shows an experiment live");
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
  EXPECT_THAT(Complete(Describe(app_), {"watch", "--until=done", "--from-event", "3", ""}).given,
              ElementsAre(Pair("--from_event", "3"), Pair("--until", "done")));
}

}  // namespace
}  // namespace lengthwise::client
