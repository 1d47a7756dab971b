#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A stand-in for Python prints its arguments.
class PythonCommandsTest : public CommandsTest {
 protected:
  PythonCommandsTest() {
    const std::string path =
        File("python", "#!/bin/sh\necho \"$@ at $LENGTHWISE_SERVER\"\nexit 2\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    setenv("LENGTHWISE_PYTHON", path.c_str(), 1);
  }
  ~PythonCommandsTest() override { unsetenv("LENGTHWISE_PYTHON"); }
};

TEST_F(PythonCommandsTest, PythonPackageMakesComparisons) {
  EXPECT_EQ(Run({"results", "e-1", "--compare", "randomized_pe/table_1", "--whole-table",
                 "--output", "latex"}),
            kUsage)
      << "its exit code";
  EXPECT_EQ(out_,
            "-m lengthwise results e-1 --compare randomized_pe/table_1 --whole_table --output "
            "latex --columns 110 --color never at " +
                server_.address() + "\n");
  Run({"results", "e-1", "--select", "unseen", "--output", "markdown"});
  EXPECT_EQ(
      out_,
      "-m lengthwise results e-1 --select=unseen --output markdown --columns 110 --color never "
      "at " +
          server_.address() + "\n");
  terminal_ = {.width = 80, .height = 24};
  Run({"compare", "e-1", "f-1", "--color", "always"});
  EXPECT_EQ(out_,
            "-m lengthwise compare --screen --output table --columns 80 --color always -- e-1 f-1 "
            "at " +
                server_.address() + "\n");
  Run({"results", "--compare", "list", "--output", "json", "--color", "never", "--server",
       "127.0.0.1:1"});
  EXPECT_EQ(out_,
            "-m lengthwise results --compare list --screen --output json --columns 80 --color "
            "never at \n");
}

TEST_F(PythonCommandsTest, MissingEnvironmentGivesOneLineOfAdvice) {
  setenv("LENGTHWISE_PYTHON", "/nowhere/python", 1);
  EXPECT_EQ(Run({"results", "e-1", "--compare", "randomized_pe/table_1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("cannot execute /nowhere/python"));
  EXPECT_THAT(err_, HasSubstr("run deploy/install.sh\n"));
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
}

TEST_F(CommandsTest, ResultsSayThatNothingChooses) {
  RealServer& real = server_.real();
  real.Submit("e", {"none"});
  real.Train("w", 1, {0.5, 0.5, 0.25, 0.25});
  EXPECT_EQ(Run({"results", "e-1"}), kSuccess) << err_;
  EXPECT_THAT(out_, Not(HasSubstr("Nothing chooses")));
  // Two seeds, and no evaluated length was seen.
  server_.Edit<v1::SummarizeExperimentResponse>(
      "SummarizeExperiment", [](v1::SummarizeExperimentResponse& summary) {
        v1::SummarizeExperimentResponse::Cell& cell = *summary.mutable_cells(0);
        cell.mutable_trials()->set_succeeded(2);
        cell.clear_best_trial();
        cell.clear_seen_accuracy();
      });
  EXPECT_EQ(Run({"results", "e-1"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("\nNothing chooses between learning rates or seeds: no evaluated "
                              "length counts as seen. Give evaluation.validation "));
}

TEST_F(CommandsTest, EvaluatesAStoredModel) {
  RealServer& real = server_.real();
  real.Submit("e", {"none"});
  const std::string trial = RealServer::TrialName("experiments/e-1", "none");
  real.LeaseTrials("experiments/e-1", 1);
  real.EndTrial(trial, v1::SUCCEEDED);
  // A worker evaluates while the command watches.
  server_.AnswerBy<v1::WatchExperimentRequest>(
      "WatchExperiment",
      [&](const v1::WatchExperimentRequest& request) -> std::optional<FaultyServer::Answer> {
        real.LeaseTrials(request.name(), 1);
        v1::Event evaluated;
        evaluated.set_trial(real.TrialsOf(request.name())[0]);
        v1::LengthAccuracies& accuracies = *evaluated.mutable_length_accuracies();
        accuracies.set_final(true);
        for (const int length : {41, 42, 43}) {
          accuracies.add_lengths(length);
          accuracies.add_accuracies(0.5);
          accuracies.add_losses(1);
        }
        real.Append(evaluated);
        real.EndTrial(evaluated.trial(), v1::SUCCEEDED);
        return std::nullopt;
      });
  EXPECT_EQ(Run({"evaluate", "e-1/0", "--lengths", "41..43", "--sequences", "7",
                 "--attention_lengths", "1..3", "--attention_sequences", "36", "--sequence_scores",
                 "--answers", "3", "--embedding_noise", "0.02,0.1", "--training_examples", "80"}),
            kSuccess)
      << err_;
  EXPECT_THAT(out_, HasSubstr("Evaluating bucket_sort-encoder-none-lr0.001-seed0 again as "
                              "e_evaluation-1\n"));
  EXPECT_THAT(out_, HasSubstr("50.0"));
  const auto requests = server_.Requests<v1::EvaluateTrialRequest>("EvaluateTrial");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].trial(), trial);
  EXPECT_THAT(requests[0].evaluation().lengths(), testing::ElementsAre(41, 42, 43));
  EXPECT_EQ(requests[0].evaluation().sequences(), 7);
  EXPECT_FALSE(requests[0].evaluation().has_seed());
  EXPECT_THAT(requests[0].evaluation().attention_lengths(), testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(requests[0].evaluation().attention_sequences(), 36);
  EXPECT_TRUE(requests[0].evaluation().sequence_scores());
  EXPECT_EQ(requests[0].evaluation().answers(), 3);
  EXPECT_THAT(requests[0].evaluation().embedding_noise(), testing::ElementsAre(0.02, 0.1));
  EXPECT_EQ(requests[0].evaluation().training_examples(), 80);
}

}  // namespace
}  // namespace lengthwise::client
