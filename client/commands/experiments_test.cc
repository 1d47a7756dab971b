#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/commands/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandsTest, SubmitsTheTextOnceWithARequestId) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("Submitted e-1: 6 trials in 2 packs\n  lengthwise watch e-1"));
  const auto requests = server_.create_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].specification_text().text(), kSpecification);
  EXPECT_EQ(requests[0].owner(), "ada");
  EXPECT_EQ(requests[0].request_id().size(), 24u);
}

TEST_F(CommandsTest, OlderServerThatLacksAnEncodingIsToBeUpgraded) {
  // The server finds in the comment what this client takes for no encoding.
  const std::string path = File("e.yaml", absl::StrCat(kSpecification, "# rotery\n"));
  EXPECT_EQ(Run({"submit", path}), kUsage);
  EXPECT_THAT(err_, HasSubstr("encodings[1]: unknown encoding \"rotery\""));
  EXPECT_THAT(err_, HasSubstr("This client accepts " + path +
                              ": the server is of an older "
                              "release; upgrade the server"));
}

TEST_F(CommandsTest, ADryRunSubmitsNothing) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--dry-run"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("e: 6 trials in 2 packs; nothing was submitted\n"));
  EXPECT_THAT(out_, HasSubstr("Estimated time: unknown: no trials of the same"));
  EXPECT_TRUE(server_.create_requests().empty());
}

TEST_F(CommandsTest, ListsExperiments) {
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("No experiments yet."));
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  EXPECT_EQ(Run({"list", "--output", "csv"}), kSuccess);
  EXPECT_EQ(out_,
            "name,owner,description,create_time,trials,queued,running,succeeded,failed,cancelled\n"
            "experiments/e-1,ada,,2023-11-14T22:13:20+00:00,2,2,0,0,0,0\n");
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("2 queued"));
  EXPECT_EQ(Run({"list", "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("2 queued"));
  EXPECT_EQ(Run({"list", "--owner", "eve"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("eve has no experiments here"));
}

TEST_F(CommandsTest, ShowsExperimentsAndTrials) {
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("1  bucket_sort-sin_cos  queued"));
  EXPECT_EQ(Run({"show", "e/1"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("bucket_sort-sin_cos\n"));
  EXPECT_THAT(out_, HasSubstr("history       cannot be read: "));
  EXPECT_EQ(Run({"show", "e-1", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)["trials"].size(), 2u);
  EXPECT_EQ(Run({"show", "f-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no experiment \"f-1\""));
}

TEST_F(CommandsTest, ShowsParametersInTheOrderOfTheirNames) {
  server_.AddExperiment("e-1", {"none"});
  v1::TrialSpecification specification;
  specification.mutable_network()->set_name("encoder");
  std::string sorted;
  for (int i = 29; i >= 10; --i) {
    const std::string name = absl::StrCat("p", i);
    (*specification.mutable_network()->mutable_parameters())[name].set_number_value(i);
    sorted = absl::StrCat(name, "=", i, sorted.empty() ? "" : ", ", sorted);
  }
  server_.SetSpecification("experiments/e-1/trials/bucket_sort-none", specification);
  EXPECT_EQ(Run({"show", "e/0"}), kSuccess);
  const std::string shown =
      absl::StrJoin(absl::StrSplit(out_, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
  EXPECT_THAT(shown, HasSubstr(absl::StrCat("encoder (", sorted, ")")));
}

TEST_F(CommandsTest, ShowsWhoChangedATrialWhenAndWhy) {
  server_.AddExperiment("e-1", {"none"});
  v1::WatchExperimentResponse response;
  v1::Event& event = *response.add_events();
  event.set_trial("experiments/e-1/trials/bucket_sort-none");
  event.mutable_time()->set_seconds(1'700'000'000);
  event.mutable_state_change()->set_from(v1::RUNNING);
  event.mutable_state_change()->set_to(v1::QUEUED);
  event.mutable_state_change()->set_actor("worker n07-1");
  event.mutable_state_change()->set_reason("gave it back");
  response.add_events()->mutable_log_line()->set_text("not a change");
  response.set_caught_up(true);
  for (int i = 0; i < 2; ++i) server_.AddWatchScript({{response}, grpc::Status::OK});
  EXPECT_EQ(Run({"show", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("queued            user ada      submitted"));
  EXPECT_THAT(out_, HasSubstr("running → queued  worker n07-1  gave it back"));
  EXPECT_THAT(out_, Not(HasSubstr("not a change")));
  EXPECT_EQ(server_.watch_requests()[0].name(), "experiments/e-1/trials/bucket_sort-none");
  EXPECT_TRUE(server_.watch_requests()[0].log_only());
  EXPECT_EQ(Run({"show", "e-1/0", "--output", "json"}), kSuccess);
  const nlohmann::json shown = nlohmann::json::parse(out_);
  EXPECT_EQ(shown["name"], "experiments/e-1/trials/bucket_sort-none");
  ASSERT_EQ(shown["history"].size(), 1u);
  EXPECT_EQ(shown["history"][0]["state_change"]["actor"], "worker n07-1");
}

TEST_F(CommandsTest, RetriesWhatFailedAndOnRequestWhatWasCancelled) {
  server_.AddExperiment("e-1", {"none", "sin_cos", "alibi"});
  server_.SetState("experiments/e-1/trials/bucket_sort-none", v1::FAILED);
  server_.SetState("experiments/e-1/trials/bucket_sort-sin_cos", v1::CANCELLED);
  server_.SetState("experiments/e-1/trials/bucket_sort-alibi", v1::SUCCEEDED);
  EXPECT_EQ(Run({"retry", "e-1"}), kSuccess);
  EXPECT_EQ(out_, "Queued 1 trial of e-1 again: 1 queued, 1 done, 1 cancelled.\n");
  EXPECT_EQ(Run({"retry", "e-1", "--failed"}), kSuccess);
  EXPECT_EQ(out_, "No trial of e-1 has failed; nothing was queued.\n");
  EXPECT_EQ(Run({"retry", "e-1/2"}), kSuccess);
  EXPECT_EQ(out_,
            "The trial bucket_sort-alibi is not one that has failed or was cancelled; nothing was "
            "queued.\n");
  EXPECT_EQ(Run({"retry", "e-1/1"}), kSuccess);
  EXPECT_EQ(out_, "Queued the trial bucket_sort-sin_cos again: 2 queued, 1 done.\n");
  EXPECT_EQ(Run({"retry", "f-1"}), kFailure);
}

TEST_F(CommandsTest, CancelsAndDeletes) {
  server_.AddExperiment("e-1", {"none", "sin_cos"});
  EXPECT_EQ(Run({"delete", "e-1", "--yes"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("cancel first"));
  EXPECT_EQ(Run({"cancel", "e-1/0"}), kSuccess);
  EXPECT_EQ(out_, "Cancelled the trial bucket_sort-none.\n");
  EXPECT_EQ(Run({"cancel", "e-1"}), kSuccess);
  EXPECT_EQ(out_, "Cancelled e-1: 2 cancelled.\n");
  EXPECT_EQ(Run({"delete", "e", "--yes"}), kFailure);  // only by its full name
  EXPECT_TRUE(server_.deleted().empty());
  EXPECT_EQ(Run({"delete", "e-1", "--yes"}), kSuccess);
  EXPECT_EQ(server_.deleted(), std::vector<std::string>{"experiments/e-1"});
}

TEST_F(CommandsTest, ExtendsAnExperimentBySeeds) {
  server_.AddExperiment("e-1", {"none"});
  EXPECT_EQ(Run({"extend", "e", "--seeds", "10..12,20"}), kSuccess);
  EXPECT_EQ(out_, "Added 4 trials to e-1\n");
  const auto requests = server_.extend_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].name(), "experiments/e-1");
  EXPECT_THAT(requests[0].seeds(), testing::ElementsAre(10, 11, 12, 20));
  EXPECT_EQ(Run({"extend", "e"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("extend needs new seeds, such as --seeds 10..19"));
  EXPECT_EQ(Run({"extend", "e", "--seeds", "ten"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--seeds: got \"ten\""));
}

TEST_F(CommandsTest, ShowsWhatAnExperimentTakesOnTheDisk) {
  server_.AddExperiment("e-1", {"none"});
  v1::DiskUse use;
  use.set_artifact_bytes(3 << 20);
  use.set_artifacts(1);
  use.set_event_bytes(2048);
  use.set_events(1234);
  server_.SetDiskUse("experiments/e-1", use);
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("on disk       3.0 MiB in 1 checkpoint, 2.0 KiB in 1,234 events"));
  EXPECT_EQ(Run({"show", "e"}), kSuccess) << "found by its specification's name";
  EXPECT_THAT(out_, HasSubstr("on disk"));
}

}  // namespace
}  // namespace lengthwise::client
