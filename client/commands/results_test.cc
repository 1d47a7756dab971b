#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "client/commands/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

// A cell of succeeded trials, seen up to length 2.
v1::SummarizeExperimentResponse Summary(const std::string& encoding, int trials, double unseen) {
  v1::SummarizeExperimentResponse summary;
  auto& cell = *summary.add_cells();
  cell.set_task("bucket_sort");
  cell.set_network("encoder");
  cell.set_encoding(encoding);
  cell.set_learning_rate(0.001);
  cell.mutable_trials()->set_succeeded(trials);
  cell.mutable_unseen_accuracy()->set_trials(trials);
  cell.mutable_unseen_accuracy()->set_mean(unseen);
  cell.mutable_unseen_accuracy()->set_deviation(trials > 1 ? 0.05 : 0);
  cell.mutable_unseen_accuracy()->set_max(unseen);
  return summary;
}

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
            "latex --width 110 --color never at " +
                server_.address() + "\n");
  terminal_ = {.width = 80, .height = 24};
  Run({"compare", "e-1", "f-1", "--color", "always"});
  EXPECT_EQ(out_, "-m lengthwise compare e-1 f-1 --output table --width 80 --color always at " +
                      server_.address() + "\n");
  Run({"results", "--compare", "list", "--output", "json", "--color", "never", "--server",
       "127.0.0.1:1"});
  EXPECT_EQ(out_,
            "-m lengthwise results --compare list --output json --width 80 --color never at \n");
}

TEST_F(PythonCommandsTest, MissingEnvironmentGivesOneLineOfAdvice) {
  setenv("LENGTHWISE_PYTHON", "/nowhere/python", 1);
  EXPECT_EQ(Run({"results", "e-1", "--compare", "randomized_pe/table_1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("cannot execute /nowhere/python"));
  EXPECT_THAT(err_, HasSubstr("run deploy/install.sh\n"));
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
}

TEST_F(CommandsTest, EvaluatesAStoredModel) {
  server_.AddExperiment("e-1", {"none"});
  server_.AddExperiment("e_evaluation-1", {"none"});
  v1::SummarizeExperimentResponse summary = Summary("none", 1, 0.5);
  summary.mutable_cells(0)->add_lengths(41);
  summary.mutable_cells(0)->add_mean_accuracies(0.5);
  server_.SetSummary("experiments/e_evaluation-1", summary);
  v1::WatchExperimentResponse response;
  response.set_caught_up(true);
  server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"evaluate", "e-1/0", "--lengths", "41..43", "--sequences", "7",
                 "--attention_lengths", "1..3", "--attention_sequences", "36", "--sequence_scores",
                 "--embedding_noise", "0.02,0.1", "--training_examples", "80"}),
            kSuccess);
  EXPECT_THAT(out_, HasSubstr("Evaluating bucket_sort-none again as e_evaluation-1\n"));
  EXPECT_THAT(out_, HasSubstr("50.0"));
  const auto requests = server_.evaluate_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].trial(), "experiments/e-1/trials/bucket_sort-none");
  EXPECT_THAT(requests[0].evaluation().lengths(), testing::ElementsAre(41, 42, 43));
  EXPECT_EQ(requests[0].evaluation().sequences(), 7);
  EXPECT_FALSE(requests[0].evaluation().has_seed());
  EXPECT_THAT(requests[0].evaluation().attention_lengths(), testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(requests[0].evaluation().attention_sequences(), 36);
  EXPECT_TRUE(requests[0].evaluation().sequence_scores());
  EXPECT_THAT(requests[0].evaluation().embedding_noise(), testing::ElementsAre(0.02, 0.1));
  EXPECT_EQ(requests[0].evaluation().training_examples(), 80);
}

}  // namespace
}  // namespace lengthwise::client
