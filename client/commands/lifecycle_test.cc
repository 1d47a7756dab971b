// User workflows with experiments and the server's disk, from the command line to the SQLite file
// and back.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/commands/testing/commands_fixture.h"
#include "client/connection/testing/real_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Experiment e-1 of six trials: encodings none and sin_cos, three seeds each.
class LifecycleTest : public CommandsTestOn<RealServer> {
 protected:
  LifecycleTest() {
    EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--owner", "ada"}), kSuccess) << err_;
  }

  // Leases trials to the worker, which has not sent events yet.
  v1::Lease Lease(const std::string& worker, int trials) {
    EXPECT_EQ(server_.calls().Register(worker, trials), absl::OkStatus());
    return server_.calls().Acquire(worker);
  }
  void Fail(const v1::Lease& lease, int trial, int64_t sequence = 1) {
    const auto answer = server_.calls().Send(
        lease, {server::OutcomeEvent(lease, trial, sequence, 5, v1::Outcome::FAILED_PERMANENTLY,
                                     "the loss is not a number")});
    EXPECT_EQ(answer->acknowledged_sequence(), sequence) << answer->detail();
  }
};

TEST_F(LifecycleTest, ListsExperimentsByOwner) {
  EXPECT_EQ(Run({"list", "--output", "csv"}), kSuccess);
  EXPECT_EQ(out_,
            "name,owner,description,create_time,trials,queued,running,succeeded,failed,cancelled\n"
            "experiments/e-1,ada,,2023-11-14T22:13:20+00:00,6,6,0,0,0,0\n");
  EXPECT_EQ(Run({"list", "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("6 queued"));
  EXPECT_EQ(Run({"list", "--owner", "eve"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("eve has no experiments here"));
}

TEST_F(LifecycleTest, ExperimentsAreHandedOver) {
  EXPECT_EQ(Run({"hand-over", "e-1", "--to", "grace"}), kSuccess) << err_;
  EXPECT_EQ(out_, "e-1 belongs to grace.\n");
  EXPECT_EQ(Run({"hand-over", "--owner", "grace", "--to", "sam"}), kSuccess) << err_;
  EXPECT_EQ(out_, "e-1 belongs to sam.\n");
  EXPECT_EQ(Run({"list", "--owner", "sam"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("6 queued"));
  EXPECT_EQ(Run({"hand-over", "--owner", "grace", "--to", "ada"}), kSuccess) << err_;
  EXPECT_EQ(out_, "grace has no experiments.\n");
  for (const char* command : {"hand-over", "list", "cancel"}) {
    std::vector<std::string> arguments = {command, "--owner", "\x1b[31mred"};
    if (arguments[0] == "hand-over") arguments.insert(arguments.end(), {"--to", "ada"});
    EXPECT_EQ(Run(arguments), kSuccess) << err_;
    EXPECT_THAT(out_, HasSubstr("\\x1b[31mred")) << "a terminal would obey it";
  }
  EXPECT_EQ(Run({"hand-over", "e-1", "--to", "bob\nline"}), kSuccess) << err_;
  EXPECT_EQ(out_, "e-1 belongs to bob line.\n");
  EXPECT_EQ(Run({"hand-over", "--to", "ada"}), kUsage);
}

TEST_F(LifecycleTest, ShowsTheFilesOfNetworks) {
  std::filesystem::create_directories(testing::TempDir() + "/nets");
  std::ofstream(testing::TempDir() + "/nets/__init__.py") << "from .net import Net";
  std::ofstream(testing::TempDir() + "/nets/net.py") << "class Net:\n    pass  # \x1b[2J\n";
  std::ofstream(testing::TempDir() + "/nets/data") << "\xff";
  const std::string path = File("module.yaml",
                                "name: module\ntasks: reverse_string\nnetworks:\n"
                                "  - {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
                                "  - {name: python, label: mine, file: nets, class: Net}\n"
                                "encodings: [own, none]\nlearning_rates: 0.001\nseeds: [0, 1]\n"
                                "training: {steps: 10, lengths: 1..2}\nevaluation: {lengths: 2}\n");
  ASSERT_EQ(Run({"submit", path}), kSuccess) << err_;
  // Later changes of the file change nothing.
  std::ofstream(testing::TempDir() + "/nets/net.py") << "class Other:\n    pass\n";
  ASSERT_EQ(Run({"show", "module", "--network"}), kSuccess) << err_;
  EXPECT_THAT(out_, StartsWith("# mine: python ("));
  EXPECT_THAT(out_, EndsWith("# __init__.py\nfrom .net import Net\n"
                             "# data: not text; --output json has its bytes\n"
                             "# net.py\nclass Net:\n    pass  # \\x1b[2J\n"));
  ASSERT_EQ(Run({"show", "module", "--network", "--output", "json"}), kSuccess) << err_;
  EXPECT_THAT(out_, HasSubstr("\"data\":{\"base64\":\"/w==\"}"));
  EXPECT_NE(Run({"show", "e-1/0", "--network"}), kSuccess);
  EXPECT_THAT(err_, HasSubstr("all networks are built-in ones, which have no files"));
}

TEST_F(LifecycleTest, ShowsExperimentsAndTrials) {
  server_.Train("n07-1", 1, {0.5});
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("4 +bucket_sort-encoder-sin_cos-lr0.001-seed1 +queued"));
  EXPECT_THAT(out_, ContainsRegex("on disk +[0-9.]+ [KM]?i?B in 1 checkpoint, "));
  EXPECT_EQ(Run({"show", "e"}), kSuccess) << "found by its specification's name";
  EXPECT_THAT(out_, HasSubstr("on disk"));
  EXPECT_EQ(Run({"show", "e/1"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("bucket_sort-encoder-none-lr0.001-seed1\n"));
  terminal_ = {.width = 30, .height = 24};
  EXPECT_EQ(Run({"show", "e/1", "--color", "never"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("e-1/1\n")) << "the id is too long for a line";
  terminal_.width = 0;
  EXPECT_EQ(Run({"show", "e-1", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)["trials"].size(), 6u);
  EXPECT_EQ(Run({"show", "f-1"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no experiment \"f-1\""));
}

TEST_F(LifecycleTest, ShowsWhoChangedATrialWhenAndWhy) {
  const v1::Lease lease = Lease("n07-1", 1);
  v1::Event line = server::PointsEvent(lease, 0, 1, 1);
  line.mutable_log_line()->set_text("not a change");
  EXPECT_EQ(server_.calls().Send(lease, {line})->acknowledged_sequence(), 1);
  Fail(lease, 0, 2);
  EXPECT_EQ(Run({"show", "e-1/0"}), kSuccess);
  EXPECT_THAT(out_, Not(HasSubstr("not a change")));
  EXPECT_THAT(out_, ContainsRegex("queued +user ada +submitted"));
  EXPECT_THAT(out_, ContainsRegex("running .* failed +worker n07-1 .*the loss is not a number"));
  EXPECT_EQ(Run({"show", "e-1/0", "--output", "json"}), kSuccess);
  const nlohmann::json shown = nlohmann::json::parse(out_);
  EXPECT_EQ(shown["history"].back()["state_change"]["actor"], "worker n07-1");
}

TEST_F(LifecycleTest, RetriesFailedAndOptionallyCancelledTrials) {
  const v1::Lease lease = Lease("n07-1", 3);
  ASSERT_EQ(lease.trials_size(), 3);
  Fail(lease, 0);
  EXPECT_EQ(Run({"cancel", "e-1/1"}), kSuccess);
  EXPECT_EQ(out_, "Cancelled the trial bucket_sort-encoder-none-lr0.001-seed1.\n");
  EXPECT_TRUE(server_.calls().Complete(lease, 2, 10, {0.5}));
  EXPECT_EQ(Run({"retry", "e-1"}), kSuccess);
  EXPECT_EQ(out_, "Queued 1 trial of e-1 again: 4 queued, 1 done, 1 cancelled.\n");
  EXPECT_EQ(Run({"retry", "e-1", "--failed"}), kSuccess);
  EXPECT_EQ(
      out_,
      "No trial of e-1 has failed; nothing was queued.\n"
      "1 trial was cancelled; queue it again with\n  lengthwise retry e-1 --cancelled --server " +
          server_.address() + "\n");
  EXPECT_EQ(Run({"retry", "e-1/2"}), kSuccess);
  EXPECT_EQ(out_,
            "The trial bucket_sort-encoder-none-lr0.001-seed2 is not one that has failed or was "
            "cancelled; nothing was queued.\n");
  EXPECT_EQ(Run({"retry", "e-1/1"}), kSuccess);
  EXPECT_EQ(out_,
            "Queued the trial bucket_sort-encoder-none-lr0.001-seed1 again: 5 queued, 1 done.\n");
  EXPECT_EQ(Run({"retry", "f-1"}), kFailure);
}

TEST_F(LifecycleTest, ChangesNeedAFullName) {
  const std::vector<std::vector<std::string>> kCommands = {
      {"cancel", "e-"}, {"retry", "e-"}, {"extend", "e-", "--seeds", "7"}, {"cancel", "e-/0"}};
  for (const std::vector<std::string>& command : kCommands) {
    EXPECT_EQ(Run(command), kFailure);
    EXPECT_THAT(err_, HasSubstr("this command needs a full name, such as e-1")) << command[0];
  }
  EXPECT_NE(Run({"cancel", ""}), kSuccess);
  EXPECT_THAT(err_, HasSubstr("give the name of an experiment or a trial"));
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("6 queued"));
}

TEST_F(LifecycleTest, CancelsAndDeletes) {
  EXPECT_EQ(Run({"delete", "e-1", "--yes"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("cancel"));
  EXPECT_EQ(Run({"cancel", "e-1"}), kSuccess);
  EXPECT_EQ(out_, "Cancelled e-1: 6 cancelled.\n");
  EXPECT_EQ(Run({"cancel", "e-1"}), kSuccess);
  EXPECT_EQ(out_, "No trial of e-1 was left to cancel: 6 cancelled.\n");
  EXPECT_EQ(Run({"delete", "e", "--yes"}), kFailure);  // only by its full name
  EXPECT_TRUE(server_.calls()->reads().GetExperiment("experiments/e-1").ok());
  EXPECT_EQ(Run({"delete", "e-1", "--yes"}), kSuccess);
  EXPECT_TRUE(absl::IsNotFound(server_.calls()->reads().GetExperiment("experiments/e-1").status()));
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("No experiments yet."));
}

TEST_F(LifecycleTest, ExtendsAnExperimentBySeeds) {
  EXPECT_EQ(Run({"extend", "e", "--seeds", "10..12,20"}), kSuccess);
  EXPECT_THAT(out_, EndsWith("\nAdded 8 trials to e-1\n"));
  EXPECT_EQ(Run({"extend", "e", "--seeds", "10..12,20"}), kSuccess);
  EXPECT_THAT(out_, EndsWith("e-1 has all of these trials already; nothing was added\n"));
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("bucket_sort-encoder-sin_cos-lr0.001-seed20"));
  EXPECT_EQ(Run({"extend", "e"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("extend: got no seeds, expected new ones such as --seeds 10..19"));
  EXPECT_EQ(Run({"extend", "e", "--seeds", "ten"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--seeds: got \"ten\""));
}

TEST_F(LifecycleTest, ResultsKeepSeenAndUnseenApart) {
  // Training uses lengths up to 4.
  server_.Train("n07-1", 3, {1, 0.5, 0.25, 0.25, 0.2, 0.1});
  EXPECT_EQ(Run({"results", "e-1"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("100.0  50.0  25.0  25.0  50.0 │ 20.0  10.0  15.0  0.0 │ █▅▃▃┊▂▂"));
  EXPECT_THAT(out_, HasSubstr("3 of 6 trials are not in the table: they have not"));
  EXPECT_EQ(Run({"results", "e-1", "--output", "csv"}), kSuccess);
  EXPECT_THAT(out_,
              AllOf(HasSubstr(",3,true,0.25,0.75,100\n"), HasSubstr(",6,false,0.1,0.9,100\n")));
}

TEST_F(LifecycleTest, BacksUpAndShowsDiskUsage) {
  EXPECT_EQ(Run({"backup", "monday"}), kSuccess);
  const std::string path = server_.calls().data_dir() + "/backups/monday";
  EXPECT_THAT(out_, AllOf(StartsWith("Backed up "), HasSubstr(" to " + path + " on the server's"),
                          HasSubstr("lengthwise_server --data_dir NEW --restore " + path + "\n")));
  EXPECT_EQ(Run({"backup", "monday"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is a backup \"monday\" already"));
  EXPECT_EQ(Run({"storage"}), kSuccess);
  EXPECT_THAT(out_, AllOf(HasSubstr(server_.calls().data_dir()), HasSubstr("monday")));
  EXPECT_EQ(Run({"storage", "--output", "json"}), kSuccess);
  EXPECT_EQ(nlohmann::json::parse(out_)[3]["name"], "monday");
}

TEST_F(LifecycleTest, ListsWorkers) {
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("No workers yet."));
  Lease("n07-cuda0", 1);
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("n07-cuda0  busy"));
  EXPECT_EQ(server_.calls().Register("stopped"), absl::OkStatus());
  EXPECT_EQ(server_.calls().Stop("stopped"), absl::OkStatus());
  EXPECT_EQ(Run({"workers"}), kSuccess);
  EXPECT_THAT(out_, ContainsRegex("stopped +stopped "));
  EXPECT_THAT(out_, Not(HasSubstr("lost")));
}

}  // namespace
}  // namespace lengthwise::client
