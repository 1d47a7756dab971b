// Program::Confirm in a real terminal and without one.
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "client/commands/testing/commands_fixture.h"
#include "client/connection/testing/real_server.h"
#include "client/display/testing/pseudo_terminal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kAnswerDeadline = absl::Seconds(60);

// Experiment e-1 has six cancelled trials.
class ConfirmationTest : public CommandsTestOn<RealServer> {
 protected:
  ConfirmationTest() {
    // The test may have been started in a terminal.
    EXPECT_NE(std::freopen("/dev/null", "r", stdin), nullptr);
    EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification)}), kSuccess) << err_;
    EXPECT_EQ(Run({"cancel", "e-1"}), kSuccess) << err_;
  }

  bool IsThere() { return server_.calls()->reads().GetExperiment("experiments/e-1").ok(); }

  // Deletes e-1 in a terminal, types the answer, and waits for `outcome`.
  void DeleteAndAnswer(const std::string& answer, const std::string& outcome) {
    PseudoTerminal terminal({"client/lengthwise", "delete", "e-1", "--server", server_.address()},
                            {{"LENGTHWISE_CONFIG", ""}, {"NO_COLOR", "1"}},
                            {.width = 120, .height = 20});
    const auto question = terminal.ReadUntil("Continue? [y/N] ", kAnswerDeadline);
    ASSERT_TRUE(question.has_value()) << terminal.unread();
    EXPECT_THAT(*question,
                HasSubstr("This deletes e-1: 6 trials with their models and histories, "));
    EXPECT_TRUE(IsThere());
    terminal.Type(answer);
    EXPECT_TRUE(terminal.ReadUntil(outcome, kAnswerDeadline).has_value()) << terminal.unread();
  }
};

TEST_F(ConfirmationTest, YesDeletes) {
  DeleteAndAnswer("y\n", "Deleted e-1.");
  EXPECT_FALSE(IsThere());
}

TEST_F(ConfirmationTest, NothingElseDeletes) {
  for (const char* answer : {"n\n", "\n", "yesterday\n", "\x04", "\x03"}) {
    DeleteAndAnswer(answer, "lengthwise: nothing was done");
  }
  EXPECT_TRUE(IsThere());
}

TEST(RecommendedCommandTest, LeadsToTheSameServer) {
  std::ostringstream out;
  Program program(out, out);
  EXPECT_EQ(program.WhereArguments(), "");
  CommandLine line("lengthwise", "");
  const Command command = line.root().AddCommand("show", "");
  program.AddServerOrDataDirOptions(command);
  EXPECT_TRUE(
      line.Parse({"show", "--server", "n07:7070", "--token_file", "/home/ada/my token"}).ok());
  EXPECT_EQ(program.WhereArguments(), " --server n07:7070 --token_file '/home/ada/my token'");
  program.data_dir = "my runs";
  EXPECT_EQ(program.WhereArguments(), " --data_dir 'my runs'");
}

TEST_F(ConfirmationTest, OwnersTrialsAreCancelledTogether) {
  const std::string file = File("e.yaml", kSpecification);
  EXPECT_EQ(Run({"submit", file, "--owner", "sam"}), kSuccess) << err_;
  EXPECT_EQ(Run({"submit", file, "--owner", "sam"}), kSuccess) << err_;
  EXPECT_EQ(Run({"submit", file, "--owner", "ada"}), kSuccess) << err_;
  EXPECT_EQ(Run({"cancel", "--owner", "sam"}), kFailure);
  EXPECT_THAT(err_,
              StartsWith("lengthwise: this cancels 12 trials of sam in e-3 e-2; cannot ask "));
  EXPECT_THAT(err_, HasSubstr("run `lengthwise cancel --owner sam --yes --server "));
  EXPECT_EQ(Run({"cancel", "--owner", "sam", "--yes"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("Cancelled e-2: 6 cancelled.\n"));
  EXPECT_EQ(Run({"cancel", "--owner", "sam", "--yes"}), kSuccess) << err_;
  EXPECT_EQ(out_, "No trial of sam was left to cancel.\n");
  const auto of_ada = server_.calls()->reads().GetExperiment("experiments/e-4");
  EXPECT_EQ(of_ada->trials().queued(), 6);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"cancel"}, {"cancel", "e-4", "--owner", "ada"}}) {
    EXPECT_EQ(Run(wrong), kUsage);
    EXPECT_THAT(err_, HasSubstr("--owner for all of one owner"));
  }
}

TEST_F(ConfirmationTest, EndedExperimentsAreDeletedTogether) {
  const std::string file = File("e.yaml", kSpecification);
  EXPECT_EQ(Run({"submit", file, "--owner", "sam"}), kSuccess) << err_;
  EXPECT_EQ(Run({"submit", file, "--owner", "sam"}), kSuccess) << err_;
  EXPECT_EQ(Run({"cancel", "e-2"}), kSuccess) << err_;
  EXPECT_EQ(Run({"delete", "--owner", "sam"}), kFailure);
  EXPECT_THAT(err_, StartsWith("lengthwise: this deletes e-2: 6 trials with their models and "));
  EXPECT_THAT(err_, HasSubstr("run `lengthwise delete --owner sam --yes --server "));
  EXPECT_EQ(Run({"delete", "--older_than", "1ns"}), kFailure);
  EXPECT_THAT(err_, StartsWith("lengthwise: this deletes e-2 e-1: 12 trials with their models "));
  EXPECT_EQ(Run({"delete", "--owner", "eve", "--yes"}), kSuccess) << err_;
  EXPECT_EQ(out_, "No such experiment has ended.\n");
  // The test server's clock stands in 2023.
  EXPECT_EQ(Run({"delete", "--older_than", "99999d", "--yes"}), kSuccess) << err_;
  EXPECT_EQ(out_, "No such experiment has ended.\n");
  EXPECT_EQ(Run({"delete", "--older_than", "1d", "--owner", "sam", "--yes"}), kSuccess) << err_;
  EXPECT_EQ(out_, "Deleted e-2.\n");
  EXPECT_TRUE(IsThere());
  EXPECT_TRUE(server_.calls()->reads().GetExperiment("experiments/e-3").ok()) << "it is queued";
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"delete"}, {"delete", "e-1", "--owner", "sam"}}) {
    EXPECT_EQ(Run(wrong), kUsage);
    EXPECT_THAT(err_, HasSubstr("give the full name of an experiment"));
  }
  EXPECT_EQ(Run({"delete", "--older_than=-1d"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--older_than: \"-1d\" is not a time such as 90d or 12h"));
}

TEST_F(ConfirmationTest, NamesTheCommandWithoutATerminal) {
  EXPECT_EQ(Run({"delete", "e-1"}), kFailure);
  EXPECT_THAT(
      err_,
      AllOf(StartsWith("lengthwise: this deletes e-1: 6 trials with their models and "
                       "histories, "),
            HasSubstr("; cannot ask for confirmation without a terminal: run `lengthwise delete "
                      "e-1 --yes --server " +
                      server_.address() + "`\n")));
  EXPECT_TRUE(IsThere());
  EXPECT_EQ(Run({"delete", "e"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no experiment \"e\"; `delete` needs a full name, and this "
                              "one matches e-1"));
}

}  // namespace
}  // namespace lengthwise::client
