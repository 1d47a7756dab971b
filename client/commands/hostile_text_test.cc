// No command prints other users' text in a form that controls the terminal.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/printable_text.h"

namespace lengthwise::client {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Sets a title, clears the screen, changes the colour, overwrites a line, and has a C1 CSI and a
// bidi override.
constexpr char kHostile[] = "\x1b]0;title\x07\x1b[2J\x1b[31m\rover\u009b2J\u202Etxt";

class HostileTextTest : public CommandsTest {
 protected:
  HostileTextTest() {
    setenv("LENGTHWISE_CONFIG", "", 1);
    server_.real().Submit("e", {"none"});
    SetText(kHostile);

    v1::Worker worker;
    worker.set_worker_id(absl::StrCat("n07", kHostile));
    worker.mutable_provenance()->set_device(kHostile);
    worker.mutable_provenance()->set_host(kHostile);
    worker.mutable_provenance()->set_kernels(kHostile);
    worker.add_trials(absl::StrCat(kTrial, kHostile));
    v1::ListWorkersResponse workers;
    *workers.add_workers() = worker;
    server_.AnswerAlways("ListWorkers", workers);

    v1::QueryLengthAccuraciesResponse evaluations;
    auto& evaluation = *evaluations.add_evaluations();
    evaluation.set_trial(kTrial);
    evaluation.set_step(200);
    v1::LengthAccuracies& accuracies = *evaluation.mutable_accuracies();
    accuracies.set_final(true);
    for (const int length : {1, 4}) {
      accuracies.add_lengths(length);
      accuracies.add_accuracies(0.5);
      accuracies.add_losses(1);
    }
    auto& metric = *accuracies.add_metrics();
    metric.set_name(kHostile);
    metric.add_values(0.5);
    metric.add_values(0.5);
    server_.AnswerAlways("QueryLengthAccuracies", evaluations);
  }

  // Sets every free text of the experiment and its trial.
  void SetText(const std::string& text) {
    const auto edit_experiment = [text](v1::Experiment& experiment) {
      experiment.set_owner(text);
      experiment.mutable_specification()->set_description(text);
    };
    const auto edit_trial = [text](v1::Trial& trial) {
      trial.set_reason(text);
      trial.set_worker(text);
      v1::Outcome& outcome = *trial.mutable_outcome();
      outcome.set_stop_reason(text);
      outcome.mutable_provenance()->set_device(text);
      outcome.mutable_provenance()->set_host(text);
      outcome.mutable_provenance()->set_program_version(text);
    };
    server_.Edit<v1::Experiment>("GetExperiment", edit_experiment);
    server_.Edit<v1::ListExperimentsResponse>(
        "ListExperiments", [edit_experiment](v1::ListExperimentsResponse& list) {
          for (v1::Experiment& experiment : *list.mutable_experiments()) {
            edit_experiment(experiment);
          }
        });
    server_.Edit<v1::Trial>("GetTrial", edit_trial);
    server_.Edit<v1::FindExperimentResponse>(
        "FindExperiment", [edit_experiment, edit_trial](v1::FindExperimentResponse& found) {
          edit_experiment(*found.mutable_experiment());
          if (found.has_trial()) edit_trial(*found.mutable_trial());
        });
    server_.Edit<v1::ListTrialsResponse>("ListTrials", [edit_trial](v1::ListTrialsResponse& list) {
      for (v1::Trial& trial : *list.mutable_trials()) {
        edit_trial(trial);
      }
    });
  }

  // Scripts the next WatchExperiment: the trial's log with hostile text in every line.
  void AddWatch() {
    v1::WatchExperimentResponse response;
    const auto add = [&response]() -> v1::Event& {
      v1::Event& event = *response.add_events();
      event.set_position(response.events_size());
      event.set_trial(kTrial);
      return event;
    };
    v1::StateChange& started = *add().mutable_state_change();
    started.set_to(v1::RUNNING);
    started.set_worker(kHostile);
    v1::LogLine& line = *add().mutable_log_line();
    line.set_severity(v1::LogLine::WARNING);
    line.set_text(kHostile);
    v1::StateChange& failed = *add().mutable_state_change();
    failed.set_to(v1::FAILED);
    failed.set_reason(kHostile);
    failed.set_actor(kHostile);
    response.set_caught_up(true);
    server_.AnswerWatchOnce({response});
  }

  void ExpectPrintable(const std::vector<std::string>& arguments) {
    const std::string typed = absl::StrJoin(arguments, " ");
    AddWatch();
    Run(arguments);
    EXPECT_TRUE(platform::IsPrintable(out_)) << typed << " prints\n" << out_;
    EXPECT_TRUE(platform::IsPrintable(err_)) << typed << " says\n" << err_;
    // The text was received and is shown escaped.
    EXPECT_THAT(out_ + err_, AnyOf(HasSubstr("\\x1b]0;title"), HasSubstr("\\\\x1b]0;title")))
        << typed;
  }
};

TEST_F(HostileTextTest, IsWrittenOutByEveryCommand) {
  for (const std::string output : {"table", "json", "csv"}) {
    ExpectPrintable({"list", "--output", output});
    ExpectPrintable({"show", "e-1", "--output", output});
    ExpectPrintable({"show", "e-1/0", "--output", output});
    ExpectPrintable({"workers", "--output", output});
    if (output != "table") ExpectPrintable({"results", "e-1", "--output", output});
    if (output != "csv") ExpectPrintable({"logs", "e-1/0", "--output", output});
    if (output != "csv") ExpectPrintable({"watch", "e-1", "--output", output});
  }
}

TEST_F(HostileTextTest, IsWrittenOutInTheLiveView) {
  terminal_ = {.width = 120, .height = 20};
  AddWatch();
  Run({"watch", "e-1"});
  EXPECT_THAT(out_, HasSubstr("\\x1b]0;title"));
  EXPECT_THAT(out_, Not(HasSubstr("\x1b]0;")));
  EXPECT_THAT(out_, Not(HasSubstr("\rover")));
}

TEST_F(HostileTextTest, IsWrittenOutInErrors) {
  server_.RefuseAlways("GetCaller", {grpc::StatusCode::PERMISSION_DENIED, kHostile});
  EXPECT_EQ(Run({"auth", "whoami"}), kFailure);
  EXPECT_TRUE(platform::IsPrintable(err_)) << err_;
  EXPECT_THAT(err_, HasSubstr("\\x1b]0;title"));

  const std::string path = File("hostile.yaml", "name: \"\\e]0;title\\a\"\n");
  EXPECT_EQ(Run({"validate", path}), kUsage);
  EXPECT_TRUE(platform::IsPrintable(err_)) << err_;
  EXPECT_THAT(err_, HasSubstr("\\x1b]0;title"));
}

TEST_F(HostileTextTest, NewlineForgesNoRow) {
  SetText("first\nexperiments/forged  ada  done");
  EXPECT_EQ(Run({"list"}), kSuccess);
  EXPECT_THAT(out_, Not(HasSubstr("\nexperiments/forged")));
  EXPECT_EQ(Run({"show", "e-1"}), kSuccess);
  EXPECT_THAT(out_, Not(HasSubstr("\nexperiments/forged")));
}

}  // namespace
}  // namespace lengthwise::client
