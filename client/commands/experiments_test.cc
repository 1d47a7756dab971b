#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc_details.pb.h"

namespace lengthwise::client {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(CommandsTest, SubmitsTheTextOnceWithARequestId) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("Submitted e-1: 6 trials in 2 packs\n  lengthwise watch e-1"));
  const auto requests = server_.Requests<v1::CreateExperimentRequest>("CreateExperiment");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].specification_text().text(), kSpecification);
  EXPECT_EQ(requests[0].owner(), "ada");
  EXPECT_EQ(requests[0].request_id().size(), 24u);
}

TEST_F(CommandsTest, AdvisesUpgradeOfServerWithoutEncoding) {
  google::rpc::BadRequest mistakes;
  auto& mistake = *mistakes.add_field_violations();
  mistake.set_field("encodings[1]");
  mistake.set_description("unknown encoding \"sin_cos\"");
  google::rpc::Status details;
  details.set_code(grpc::StatusCode::INVALID_ARGUMENT);
  details.add_details()->PackFrom(mistakes);
  server_.RefuseAlways("CreateExperiment", {grpc::StatusCode::INVALID_ARGUMENT, "a mistake",
                                            details.SerializeAsString()});
  const std::string path = File("e.yaml", kSpecification);
  EXPECT_EQ(Run({"submit", path}), kUsage);
  EXPECT_THAT(err_, HasSubstr("encodings[1]: unknown encoding \"sin_cos\""));
  EXPECT_THAT(err_, HasSubstr("This client accepts " + path +
                              ": the server is of an older "
                              "release; upgrade the server"));
}

TEST_F(CommandsTest, DryRunSubmitsNothing) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--dry-run"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("e: 6 trials in 2 packs; nothing was submitted\n"));
  EXPECT_THAT(out_, HasSubstr("Estimated time: unknown: no trials of the same"));
  EXPECT_TRUE(server_.real().core().reads().ListExperiments({})->experiments().empty());
}

TEST_F(CommandsTest, WarnsBeforeTrainingWhereNothingWillChoose) {
  const std::string path =
      File("unseen.yaml", absl::StrReplaceAll(kSpecification, {{"[4, 8]", "[6, 8]"}}));
  const auto warning = HasSubstr("warning: no evaluated length counts as seen, so nothing chooses");
  EXPECT_EQ(Run({"validate", path}), kSuccess) << err_;
  EXPECT_THAT(out_, warning);
  EXPECT_EQ(Run({"submit", path, "--dry_run"}), kSuccess) << err_;
  EXPECT_THAT(err_, warning);
}

TEST_F(CommandsTest, ExtensionIsEstimatedFromItsExperiment) {
  server_.real().Submit("e", {"none"});
  server_.real().Train("w", 1, {1, 1});
  // Newer experiments, which measured nothing.
  for (int i = 0; i < 12; ++i) server_.real().Submit("other", {"none"});
  EXPECT_EQ(Run({"extend", "e", "--seeds", "5"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("Estimated time: about "));
  EXPECT_THAT(out_, HasSubstr("by the measured times of 1 earlier trial of the same kind"));
}

TEST_F(CommandsTest, ShowsTrialWithUnreadableHistory) {
  server_.real().Submit("e", {"none"});
  server_.RefuseAlways("WatchExperiment", {grpc::StatusCode::INTERNAL, "broken page"});
  EXPECT_EQ(Run({"show", "e/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("history       cannot be read: "));
}

// As the table of results.
TEST_F(CommandsTest, ShowsErrorsOfARegression) {
  const std::string name = server_.real().SubmitText(
      "name: e\nprotocol: positional_attention\ntasks: sorting\nseeds: 0\n");
  const std::string trial = server_.real().TrialsOf(name)[0];
  server_.real().Train("w", 1, {0, 0});
  v1::QueryLengthAccuraciesResponse measured;
  auto& evaluation = *measured.add_evaluations();
  evaluation.set_trial(trial);
  for (const auto& [scale, loss] : {std::pair(1, 0.25), {2, 3.0}, {3, 5.0}}) {
    evaluation.mutable_accuracies()->add_lengths(scale);
    evaluation.mutable_accuracies()->add_losses(loss);
  }
  evaluation.mutable_accuracies()->set_seen_loss(0.25);
  evaluation.mutable_accuracies()->set_unseen_loss(4);
  server_.AnswerAlways("QueryLengthAccuracies", measured);
  EXPECT_EQ(Run({"show", "e"}), kSuccess) << err_;
  EXPECT_THAT(out_, ContainsRegex(" seen  unseen "));
  EXPECT_THAT(out_, ContainsRegex(" 0.2500   4.000 "));
  EXPECT_EQ(Run({"show", "e/0"}), kSuccess) << err_;
  EXPECT_THAT(out_, ContainsRegex("unseen +mean squared error 4.000"));
  for (const char* shown : {"e", "e/0"}) {
    EXPECT_EQ(Run({"show", shown, "--output", "csv"}), kSuccess) << err_;
    EXPECT_THAT(out_, HasSubstr(",seen_accuracy,unseen_accuracy,training_seconds,seen_loss,"
                                "unseen_loss\n"));
    EXPECT_THAT(out_, HasSubstr(",0.25,4\n"));
  }
}

TEST_F(CommandsTest, ShowsParametersInTheOrderOfTheirNames) {
  server_.real().Submit("e", {"none"});
  // No network has so many.
  v1::Component network;
  network.set_name("encoder");
  std::string sorted;
  for (int i = 29; i >= 10; --i) {
    const std::string name = absl::StrCat("p", i);
    (*network.mutable_parameters())[name].set_number_value(i);
    sorted = absl::StrCat(name, "=", i, sorted.empty() ? "" : ", ", sorted);
  }
  server_.Edit<v1::FindExperimentResponse>(
      "FindExperiment", [&](v1::FindExperimentResponse& found) {
        *found.mutable_trial()->mutable_specification()->mutable_network() = network;
      });
  server_.Edit<v1::ListTrialsResponse>("ListTrials", [&](v1::ListTrialsResponse& trials) {
    *trials.mutable_trials(0)->mutable_specification()->mutable_network() = network;
  });
  EXPECT_EQ(Run({"show", "e/0"}), kSuccess);
  const std::string shown =
      absl::StrJoin(absl::StrSplit(out_, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
  EXPECT_THAT(shown, HasSubstr(absl::StrCat("encoder (", sorted, ")")));
}

}  // namespace
}  // namespace lengthwise::client
