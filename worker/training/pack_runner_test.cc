// Tests the runner with tiny real networks.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Context.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/pack_session.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/testing/pack_runner_fixture.h"
#include "worker/training/testing/recording_session.h"

namespace lengthwise::worker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Directive = PackSession::Directive;

TEST(PackRunnerTest, EmitsEveryFactInOrder) {
  RecordingSession session;
  RunLease(LeaseOf({TinyTrial()}), session);
  EXPECT_THAT(
      Outline(session.events(0)),
      ElementsAre("point 3", "point 6", "point 9", "checkpoint 10", "point 12", "point 15",
                  "evaluation 15", "point 18", "checkpoint 20", "point 21", "point 24", "point 27",
                  "point 30", "evaluation 30", "checkpoint 30", "point 33", "point 36", "point 39",
                  "point 40", "checkpoint 40", "final 40", "attention 40", "outcome 40"));
  for (const v1::Event& event : session.events(0)) {
    if (!event.has_training_points()) continue;
    const v1::TrainingPoints& points = event.training_points();
    EXPECT_EQ(event.step(), *points.steps().rbegin());
    EXPECT_EQ(points.losses_size(), points.steps_size());
    EXPECT_EQ(points.accuracies_size(), points.steps_size());
    EXPECT_EQ(points.gradient_norms_size(), points.steps_size());
    EXPECT_EQ(points.lengths_size(), points.steps_size());
  }
}

TEST(PackRunnerTest, FactsHaveTheSpecifiedShapes) {
  RecordingSession session;
  RunLease(LeaseOf({TinyTrial()}), session);
  const std::vector<v1::Event>& events = session.events(0);
  const v1::Outcome& outcome = events[events.size() - 1].outcome();
  const v1::AttentionMap& map = events[events.size() - 2].attention_map();
  const v1::LengthAccuracies& accuracies = events[events.size() - 3].length_accuracies();

  EXPECT_THAT(accuracies.lengths(), ElementsAre(3, 6, 9));
  EXPECT_EQ(accuracies.sequences(), 16);
  EXPECT_THAT(accuracies.sequence_counts(), ElementsAre(16, 16, 16));
  EXPECT_EQ(outcome.kind(), v1::Outcome::COMPLETED) << outcome.reason();
  EXPECT_DOUBLE_EQ(outcome.seen_accuracy(),
                   (accuracies.accuracies(0) + accuracies.accuracies(1)) / 2);
  EXPECT_DOUBLE_EQ(outcome.unseen_accuracy(), accuracies.accuracies(2));
  EXPECT_EQ(outcome.provenance().libtorch_version().substr(0, 2), "2.");
  EXPECT_EQ(outcome.provenance().device(), "cpu");
  EXPECT_EQ(outcome.provenance().threads(), 1);

  // reverse_string: four inputs and four empty tokens of id 2.
  EXPECT_EQ(map.length(), 4);
  ASSERT_EQ(map.tokens_size(), 8);
  for (int i = 4; i < 8; ++i) EXPECT_EQ(map.tokens(i), 2);
  ASSERT_EQ(map.positions_size(), 8);
  for (int i = 1; i < 8; ++i) EXPECT_LT(map.positions(i - 1), map.positions(i));
  EXPECT_EQ(map.layers(), 1);
  EXPECT_EQ(map.heads(), 2);
  ASSERT_EQ(map.probabilities().size(), 1 * 2 * 8 * 8 * sizeof(float));
  std::vector<float> probabilities(2 * 8 * 8);
  std::copy(map.probabilities().begin(), map.probabilities().end(),
            reinterpret_cast<char*>(probabilities.data()));
  for (size_t row = 0; row < 2 * 8; ++row) {
    float sum = 0;
    for (size_t key = 0; key < 8; ++key) sum += probabilities[row * 8 + key];
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(PackRunnerTest, SameTrialRepeatsItsHistory) {
  EXPECT_EQ(HistoryAlone(TinyTrial(3)), HistoryAlone(TinyTrial(3)));
  EXPECT_NE(HistoryAlone(TinyTrial(3)), HistoryAlone(TinyTrial(4)));
}

TEST(PackRunnerTest, PackIsBitIdenticalToItsMembers) {
  std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TinyTrial(2), TinyTrial(1)};
  trials[2].set_learning_rate(3e-3);
  RecordingSession session;
  RunLease(LeaseOf(trials), session);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(session.History(i), HistoryAlone(trials[i])) << i;
}

TEST(PackRunnerTest, DoublePrecisionIsBitIdenticalToo) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_precision("float64");
  EXPECT_EQ(HistoryAlone(trial), HistoryAlone(trial));
  EXPECT_NE(HistoryAlone(trial), HistoryAlone(TinyTrial(1)));
}

// Runs a trial and returns the losses of its points.
std::vector<float> LossesOf(const v1::TrialSpecification& trial) {
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED) << session.OutcomeOf(0).reason();
  std::vector<float> losses;
  for (const v1::Event& event : session.events(0)) {
    const auto& points = event.training_points().losses();
    losses.insert(losses.end(), points.begin(), points.end());
  }
  return losses;
}

// Every third step has a point, and the last, the 40th.
TEST(PackRunnerTest, PointsHaveTheMeanLossSinceThePreviousOne) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_report_every_steps(3);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  std::vector<float> means;
  for (const v1::Event& event : session.events(0)) {
    const auto& points = event.training_points().mean_losses();
    means.insert(means.end(), points.begin(), points.end());
  }
  trial.mutable_training()->set_report_every_steps(1);
  const std::vector<float> each = LossesOf(trial);
  ASSERT_EQ(each.size(), 40u);
  ASSERT_EQ(means.size(), 14u);
  for (size_t i = 0; i < 13; ++i) {
    EXPECT_FLOAT_EQ(means[i], (each[3 * i] + each[3 * i + 1] + each[3 * i + 2]) / 3) << i;
  }
  EXPECT_FLOAT_EQ(means[13], each[39]);
}

// Rounding products to bfloat16 changes the loss by less than two per cent in forty steps.
TEST(PackRunnerTest, Bfloat16LossFollowsFloat32) {
  for (v1::TrialSpecification trial : {TinyTrial(1), TinyTextTrial(1)}) {
    SCOPED_TRACE(trial.task().name());
    const std::vector<float> exact = LossesOf(trial);
    trial.mutable_training()->set_precision("bfloat16");
    const std::vector<float> rounded = LossesOf(trial);
    ASSERT_EQ(rounded.size(), exact.size());
    ASSERT_GT(exact.size(), 10u);
    EXPECT_NE(rounded, exact);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(rounded[i] / exact[i], 1, 0.02) << i;
    EXPECT_EQ(HistoryAlone(trial), HistoryAlone(trial));
  }
}

TEST(PackRunnerTest, Tf32OnACpuIsFloat32) {
  v1::TrialSpecification trial = TinyTrial(1);
  const std::vector<float> exact = LossesOf(trial);
  trial.mutable_training()->set_precision("tf32");
  EXPECT_EQ(LossesOf(trial), exact);
  EXPECT_TRUE(at::globalContext().allowTF32CuBLAS());
  trial.mutable_training()->set_precision("float32");
  LossesOf(trial);
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS()) << "the next pack asked for float32";
}

// Large enough that kernels split their work between threads.
v1::TrialSpecification WideTrial(const std::string& encoding, bool randomized) {
  v1::TrialSpecification trial = TinyTrial(1);
  (*trial.mutable_network()->mutable_parameters())["d_model"].set_number_value(64);
  SetEncoding(encoding, trial);
  (*trial.mutable_encoding()->mutable_parameters())["randomized"].set_bool_value(randomized);
  trial.mutable_training()->set_steps(4);
  trial.mutable_training()->set_batch_size(128);
  trial.mutable_training()->set_report_every_steps(1);
  trial.mutable_training()->mutable_lengths()->set_min(20);
  trial.mutable_training()->mutable_lengths()->set_max(20);
  return trial;
}

// Compares points, evaluations, maps and the weights in checkpoints.
TEST(PackRunnerTest, AnyNumberOfThreadsGivesTheSameHistory) {
  v1::TrialSpecification text = TinyTextTrial(1);
  (*text.mutable_network()->mutable_parameters())["d_model"].set_number_value(64);
  text.mutable_training()->set_steps(4);
  text.mutable_training()->mutable_packing()->set_tokens(512);
  for (const v1::TrialSpecification& trial :
       {WideTrial("sin_cos", true), WideTrial("relative", true), WideTrial("relative", false),
        WideTrial("rope", true), WideTrial("formula", true), text}) {
    SCOPED_TRACE(trial.task().name() + ", " + trial.encoding().ShortDebugString());
    std::vector<std::string> alone;
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(std::to_string(threads) + " threads");
      const auto runner = CreatePackRunner({.device = "cpu", .threads = threads}).value();
      RecordingSession session;
      ASSERT_TRUE(runner->Run(LeaseOf({trial}), session).ok());
      const v1::Outcome outcome = session.OutcomeOf(0);
      ASSERT_EQ(outcome.kind(), v1::Outcome::COMPLETED) << outcome.reason();
      EXPECT_EQ(outcome.provenance().threads(), threads);
      std::vector<std::string> history = session.History(0);
      history.pop_back();  // the outcome contains the number of threads
      if (threads == 1) alone = history;
      EXPECT_EQ(history, alone);
    }
  }
}

// A session that ends cannot fetch a checkpoint; this must not count as a failure of the trial.
TEST(PackRunnerTest, LeaseLostBeforeResumingWritesNothing) {
  v1::Lease lease = LeaseOf({TinyTrial()});
  lease.mutable_trials(0)->set_checkpoint_step(10);
  lease.mutable_trials(0)->mutable_checkpoint();
  RecordingSession session;
  session.directive = [](int64_t, int64_t) { return Directive::kLost; };
  RunLease(lease, session);
  EXPECT_TRUE(session.events(0).empty());
}

// The lease is lost at points throughout the run, and the trial resumes from its last checkpoint.
TEST(PackRunnerTest, ResumedTrialMatchesUninterrupted) {
  const std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TinyTrial(2)};
  RecordingSession undisturbed;
  RunLease(LeaseOf(trials), undisturbed);
  for (int64_t lost_at = 0; lost_at < undisturbed.asked(); lost_at += 23) {
    v1::Lease lease = LeaseOf(trials);
    RecordingSession session;
    session.directive = [=](int64_t, int64_t asked) {
      return asked >= lost_at ? Directive::kLost : Directive::kContinue;
    };
    RunLease(lease, session);
    session.directive = nullptr;
    session.Rewind(lease);
    RunLease(lease, session);
    EXPECT_EQ(session.History(0), undisturbed.History(0)) << lost_at;
    EXPECT_EQ(session.History(1), undisturbed.History(1)) << lost_at;
  }
}

TEST(PackRunnerTest, MembersMayResumeFromDifferentSteps) {
  const std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TinyTrial(2), TinyTrial(3)};
  RecordingSession undisturbed;
  RunLease(LeaseOf(trials), undisturbed);

  // Complete runs of trials 1 and 2, which provide a final and an intermediate checkpoint.
  v1::Lease lease = LeaseOf(trials);
  RecordingSession session;
  RunLease(lease, session);
  const auto keep = [&](int index, int64_t step) {
    v1::LeasedTrial& trial = *lease.mutable_trials(index);
    trial.set_checkpoint_step(step);
    trial.mutable_checkpoint();
    auto& checkpoints = session.checkpoints(index);
    checkpoints.erase(checkpoints.upper_bound(step), checkpoints.end());
  };
  keep(1, 20);
  keep(2, 40);
  RecordingSession resumed;
  for (int i = 1; i < 3; ++i) resumed.checkpoints(i) = session.checkpoints(i);
  RunLease(lease, resumed);
  // The uninterrupted history after the checkpoint of `step`.
  const auto history_after = [&](int index, int64_t step) {
    std::vector<std::string> history = undisturbed.History(index);
    const std::vector<std::string> outline = Outline(undisturbed.events(index));
    EXPECT_EQ(outline.size(), history.size()) << "both have one line per fact";
    const auto checkpoint =
        std::find(outline.begin(), outline.end(), "checkpoint " + std::to_string(step));
    EXPECT_NE(checkpoint, outline.end());
    if (checkpoint == outline.end()) return history;
    history.erase(history.begin(), history.begin() + (checkpoint - outline.begin()) + 1);
    return history;
  };
  EXPECT_EQ(resumed.History(0), undisturbed.History(0));
  EXPECT_EQ(resumed.History(1), history_after(1, 20));
  EXPECT_EQ(resumed.History(2), history_after(2, 40));
  EXPECT_THAT(Outline(resumed.events(2)), ElementsAre("final 40", "attention 40", "outcome 40"));
}

TEST(PackRunnerTest, LastCheckpointFollowsKeep) {
  std::map<std::string, size_t> last, before;
  std::map<std::string, std::vector<std::string>> histories;
  for (const std::string keep : {"all", "weights", "nothing"}) {
    v1::TrialSpecification trial = TinyTrial(1);
    trial.set_keep(keep);
    RecordingSession session;
    v1::Lease lease = LeaseOf({trial});
    RunLease(lease, session);
    last[keep] = session.checkpoints(0).at(40).size();
    before[keep] = session.checkpoints(0).at(30).size();
    for (const v1::Event& event : session.events(0)) {
      if (!event.has_checkpoint() && !event.has_outcome()) {
        v1::Event measured = event;
        measured.mutable_length_accuracies()->clear_training_seconds();
        histories[keep].push_back(measured.ShortDebugString());
      }
    }
    // A trial killed in the evaluation resumes there and ends the same.
    const std::vector<std::string> undisturbed = session.History(0);
    session.Rewind(lease);
    RunLease(lease, session);
    EXPECT_EQ(session.History(0), undisturbed) << keep;
  }
  // Parameters with two moments each, or parameters only.
  EXPECT_EQ(last["all"], before["all"]);
  EXPECT_EQ(before["weights"], before["all"]);
  EXPECT_LT(last["weights"], last["all"] / 2);
  EXPECT_EQ(last["nothing"], last["weights"]);
}

TEST(PackRunnerTest, TrainingNeedsOptimizerStateToResume) {
  v1::TrialSpecification trial = TinyTrial(1);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  // As if it had been written at step 30, before the last.
  std::string bytes = session.checkpoints(0).at(40);
  const std::string step = "\"step\":\"";
  const size_t at = bytes.find(step + "40");
  ASSERT_NE(at, std::string::npos);
  bytes[at + step.size()] = '3';
  v1::Lease lease = LeaseOf({trial});
  RecordingSession resumed;
  resumed.checkpoints(0)[30] = bytes;
  lease.mutable_trials(0)->mutable_checkpoint();
  lease.mutable_trials(0)->set_checkpoint_step(30);
  RunLease(lease, resumed);
  EXPECT_EQ(resumed.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(resumed.OutcomeOf(0).reason(), HasSubstr("without the optimizer's state"));
}

// 18 examples of lengths 1 to 6: three per length, in batches of two and one.
v1::TrialSpecification TrialOfEpochs(uint64_t seed) {
  v1::TrialSpecification trial = TinyTrial(seed);
  v1::Training& training = *trial.mutable_training();
  training.set_examples(18);
  training.set_batch_size(2);
  training.set_steps(60);  // five epochs
  training.mutable_schedule()->set_name("plateau");
  auto& schedule = *training.mutable_schedule()->mutable_parameters();
  schedule["patience"].set_number_value(0);
  schedule["factor"].set_number_value(0.5);
  schedule["threshold"].set_number_value(0.5);  // few epochs improve that much
  return trial;
}

TEST(PackRunnerTest, EpochsRepeatTheDataSet) {
  // One batch of three examples per length, and a model that does not change: the loss at a length
  // is that of its three examples.
  v1::TrialSpecification fixed = TrialOfEpochs(1);
  fixed.mutable_training()->set_batch_size(3);
  fixed.mutable_training()->set_steps(4 * 6);
  fixed.mutable_training()->set_report_every_steps(1);
  fixed.mutable_evaluation()->set_every_steps(0);
  (*fixed.mutable_encoding()->mutable_parameters())["randomized"].set_bool_value(false);
  fixed.set_learning_rate(1e-30);
  v1::TrialSpecification drawn = fixed;
  drawn.mutable_training()->set_examples(0);
  drawn.mutable_training()->mutable_schedule()->set_name("constant");
  drawn.mutable_training()->mutable_schedule()->clear_parameters();
  // Returns the largest difference between losses at one length.
  const auto spread = [](const v1::TrialSpecification& trial) {
    RecordingSession session;
    RunLease(LeaseOf({trial}), session);
    std::map<int32_t, std::pair<float, float>> ranges;
    int points = 0;
    for (const v1::Event& event : session.events(0)) {
      for (int i = 0; i < event.training_points().steps_size(); ++i, ++points) {
        const float loss = event.training_points().losses(i);
        const int32_t length = event.training_points().lengths(i);
        auto& range = ranges.emplace(length, std::pair(loss, loss)).first->second;
        range = {std::min(range.first, loss), std::max(range.second, loss)};
      }
    }
    EXPECT_EQ(points, 24);
    float widest = 0;
    for (const auto& [length, range] : ranges) {
      widest = std::max(widest, range.second - range.first);
    }
    return widest;
  };
  EXPECT_LT(spread(fixed), 1e-5);
  EXPECT_GT(spread(drawn), 1e-2);
}

TEST(PackRunnerTest, PlateausArePerMemberAcrossResumes) {
  const std::vector<v1::TrialSpecification> trials = {TrialOfEpochs(1), TrialOfEpochs(2)};
  v1::Lease lease = LeaseOf(trials);
  RecordingSession session;
  // The trial is lost in mid-epoch, so the checkpoint holds a partial sum of the epoch's losses.
  session.directive = [](int64_t, int64_t asked) {
    return asked >= 2 * 34 ? Directive::kLost : Directive::kContinue;
  };
  RunLease(lease, session);
  session.directive = nullptr;
  session.Rewind(lease);
  EXPECT_NE(lease.trials(0).checkpoint_step() % 12, 0) << "in the middle of an epoch";
  RunLease(lease, session);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(session.History(i), HistoryAlone(trials[i])) << i;

  v1::TrialSpecification constant = trials[0];
  constant.mutable_training()->mutable_schedule()->set_name("constant");
  constant.mutable_training()->mutable_schedule()->clear_parameters();
  EXPECT_NE(HistoryAlone(constant), HistoryAlone(trials[0])) << "the rate fell";
}

TEST(PackRunnerTest, DrainedPackResumesFromItsCheckpoints) {
  const std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TinyTrial(2)};
  v1::Lease lease = LeaseOf(trials);
  RecordingSession session;
  // Called for both trials before each step. After 13 steps, only the call for trial 1 returns
  // kDrain.
  session.directive = [](int64_t trial, int64_t asked) {
    return asked >= 2 * 13 && trial == 1 ? Directive::kDrain : Directive::kContinue;
  };
  RunLease(lease, session);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        Outline(session.events(i)),
        ElementsAre("point 3", "point 6", "point 9", "checkpoint 10", "point 12", "checkpoint 13"));
  }

  session.directive = nullptr;
  session.Rewind(lease);
  RunLease(lease, session);
  for (int i = 0; i < 2; ++i) {
    std::vector<std::string> history = session.History(i);
    // The additional checkpoint follows three points, a checkpoint and a point.
    history.erase(history.begin() + 5);
    EXPECT_EQ(history, HistoryAlone(trials[i])) << i;
  }
}

TEST(PackRunnerTest, DrainingBeforeTheFirstStepWritesNothing) {
  RecordingSession session;
  session.directive = [](int64_t, int64_t) { return Directive::kDrain; };
  RunLease(LeaseOf({TinyTrial()}), session);
  EXPECT_TRUE(session.events(0).empty());
}

TEST(PackRunnerTest, CancelledTrialStopsAlone) {
  const std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TinyTrial(2), TinyTrial(3)};
  RecordingSession session;
  session.directive = [](int64_t trial, int64_t asked) {
    return asked >= 3 * 11 && trial == 1 ? Directive::kCancelled : Directive::kContinue;
  };
  RunLease(LeaseOf(trials), session);
  EXPECT_THAT(Outline(session.events(1)),
              ElementsAre("point 3", "point 6", "point 9", "checkpoint 10"));
  EXPECT_EQ(session.History(0), HistoryAlone(trials[0]));
  EXPECT_EQ(session.History(2), HistoryAlone(trials[2]));
}

TEST(PackRunnerTest, NanLossFailsItsTrialAlone) {
  std::vector<v1::TrialSpecification> trials = {TinyTrial(1), TinyTrial(2)};
  trials[0].set_learning_rate(1e30);
  RecordingSession session;
  RunLease(LeaseOf(trials), session);
  const v1::Outcome failed = session.OutcomeOf(0);
  EXPECT_EQ(failed.kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(failed.reason(),
              AllOf(HasSubstr("the loss was"), HasSubstr("a lower learning rate")));
  EXPECT_THAT(failed.reason(), HasSubstr("at step"));
  EXPECT_EQ(session.History(1), HistoryAlone(trials[1]));
}

// No learning rate helps where nothing was learned yet.
TEST(PackRunnerTest, LossThatIsNotFiniteAtOnceComesWithoutAdviceOnRates) {
  v1::TrialSpecification trial = TinyTrial();
  *trial.mutable_encoding() = {};
  trial.mutable_encoding()->set_name("formula");
  (*trial.mutable_encoding()->mutable_parameters())["embedding"].set_string_value(
      "1e30 * cos(p + c)");
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  EXPECT_THAT(session.OutcomeOf(0).reason(), AllOf(HasSubstr("at step 1, before the first update"),
                                                   Not(HasSubstr("learning rate"))));
}

TEST(PackRunnerTest, UnknownTrialFailsPermanently) {
  v1::TrialSpecification trial = TinyTrial();
  trial.mutable_encoding()->set_name("sin_coz");
  (*trial.mutable_network()->mutable_parameters())["heads"].set_number_value(3);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("sin_coz"));
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("network.heads"));
}

TEST(PackRunnerTest, DamagedCheckpointFailsTemporarily) {
  v1::Lease lease = LeaseOf({TinyTrial(1), TinyTrial(2)});
  RecordingSession session;
  session.checkpoints(0)[10] = "not a checkpoint";
  lease.mutable_trials(0)->set_checkpoint_step(10);
  lease.mutable_trials(0)->mutable_checkpoint();
  RunLease(lease, session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_TEMPORARILY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("checkpoint of step 10 cannot be resumed"));
  EXPECT_EQ(session.OutcomeOf(1).kind(), v1::Outcome::COMPLETED);
}

TEST(PackRunnerTest, AnotherTrialsCheckpointIsNotResumed) {
  RecordingSession session;
  v1::Lease lease = LeaseOf({TinyTrial(1)});
  RunLease(lease, session);
  session.Rewind(lease);
  lease.mutable_trials(0)->mutable_specification()->set_data_seed(9);
  RunLease(lease, session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_THAT(session.OutcomeOf(0).reason(), HasSubstr("another specification"));
}

TEST(PackRunnerTest, ResumingAcrossBuildsLogsAWarning) {
  RecordingSession session;
  v1::Lease lease = LeaseOf({TinyTrial(1)});
  RunLease(lease, session);
  EXPECT_THAT(Outline(session.events(0)), ::testing::Not(Contains(::testing::StartsWith("log"))));
  session.Rewind(lease);
  std::string& bytes = session.checkpoints(0)[lease.trials(0).checkpoint_step()];
  const std::string version = "\"program_version\":\"";
  const size_t at = bytes.find(version);
  ASSERT_NE(at, std::string::npos);
  bytes[at + version.size()] = '9';
  RunLease(lease, session);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::COMPLETED);
  const auto warning = std::find_if(session.events(0).begin(), session.events(0).end(),
                                    [](const v1::Event& event) { return event.has_log_line(); });
  ASSERT_NE(warning, session.events(0).end());
  EXPECT_THAT(warning->log_line().text(), HasSubstr("that another build wrote (9."));
}

TEST(PackRunnerTest, ExceptionFailsTrialsTemporarily) {
  RecordingSession session;
  // Thrown within the run, like LibTorch's exceptions.
  session.directive = [](int64_t, int64_t asked) {
    if (asked == 25) throw std::runtime_error("out of memory\nframe #0: ...");
    return Directive::kContinue;
  };
  RunLease(LeaseOf({TinyTrial(1), TinyTrial(2)}), session);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(session.OutcomeOf(i).kind(), v1::Outcome::FAILED_TEMPORARILY);
    EXPECT_EQ(session.OutcomeOf(i).reason(), "out of memory");
    // The log has the full message.
    const std::vector<v1::Event>& events = session.events(i);
    ASSERT_GE(events.size(), 2u);
    EXPECT_EQ(events[events.size() - 2].log_line().text(), "out of memory\nframe #0: ...");
    EXPECT_EQ(events[events.size() - 2].log_line().severity(), v1::LogLine::ERROR);
  }
}

TEST(PackRunnerTest, LostDeviceEndsTheRunner) {
  const auto runner = CreatePackRunner({.device = "cpu", .threads = 1, .max_pack_size = 8});
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_TRUE((*runner)->device_status().ok());
  v1::TrialSpecification other = TinyTrial(2);  // of another pack
  other.mutable_task()->set_name("bucket_sort");
  RecordingSession session;
  int packs = 0;
  session.directive = [&](int64_t, int64_t asked) {
    if (asked < 3) return Directive::kContinue;
    ++packs;
    throw std::runtime_error("CUDA error: an illegal memory access was encountered\nframe #0: ...");
  };
  const absl::Status status = (*runner)->Run(LeaseOf({TinyTrial(1), other}), session);
  EXPECT_EQ(packs, 1);
  EXPECT_EQ(status, (*runner)->device_status());
  EXPECT_THAT(status.message(),
              HasSubstr("an illegal memory access was encountered; start the "
                        "worker again, and if this repeats, with --kernels plain"));
  // Both are for another worker; the log of the one that ran has the full message.
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::KIND_UNSPECIFIED);
  EXPECT_EQ(session.OutcomeOf(1).kind(), v1::Outcome::KIND_UNSPECIFIED);
  const std::vector<v1::Event>& ran = session.events(session.events(0).empty() ? 1 : 0);
  ASSERT_FALSE(ran.empty());
  EXPECT_THAT(ran.back().log_line().text(), HasSubstr("frame #0"));
}

TEST(PackRunnerTest, MissingLibraryFailsNoTrial) {
  const auto runner = CreatePackRunner({.device = "cpu", .threads = 1, .max_pack_size = 8});
  ASSERT_TRUE(runner.ok()) << runner.status();
  RecordingSession session;
  session.directive = [&](int64_t, int64_t asked) {
    if (asked < 3) return Directive::kContinue;
    throw std::runtime_error(
        "Error in dlopen: libnvrtc.so.13: cannot open shared object file: No such file\nmore");
  };
  const absl::Status status = (*runner)->Run(LeaseOf({TinyTrial(1), TinyTrial(2)}), session);
  EXPECT_EQ(status.message(),
            "Error in dlopen: libnvrtc.so.13: cannot open shared object file: No such file");
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::KIND_UNSPECIFIED);
  EXPECT_EQ(session.OutcomeOf(1).kind(), v1::Outcome::KIND_UNSPECIFIED);
  EXPECT_TRUE((*runner)->device_status().ok()) << "other trials can run here";
}

TEST(PackRunnerTest, OutOfMemoryIsReportedForEveryTrial) {
  RecordingSession session;
  session.directive = [](int64_t, int64_t asked) {
    if (asked == 25) throw std::bad_alloc();
    return Directive::kContinue;
  };
  RunLease(LeaseOf({TinyTrial(1), TinyTrial(2)}), session);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(session.OutcomeOf(i).kind(), v1::Outcome::OUT_OF_MEMORY);
    EXPECT_NE(session.OutcomeOf(i).reason(), "");
  }
}

TEST(PackRunnerTest, ModelsLearn) {
  v1::TrialSpecification trial = TinyTrial();
  trial.mutable_task()->set_name("bucket_sort");
  trial.set_learning_rate(5e-3);
  trial.mutable_training()->set_steps(300);
  trial.mutable_training()->set_batch_size(32);
  trial.mutable_evaluation()->set_every_steps(0);
  trial.mutable_evaluation()->set_sequences(64);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  std::vector<float> losses;
  for (const v1::Event& event : session.events(0)) {
    for (const float loss : event.training_points().losses()) losses.push_back(loss);
  }
  ASSERT_EQ(losses.size(), 100);
  // Guessing among five has a loss of ln 5 = 1.61 and an accuracy of 1/5.
  EXPECT_NEAR(losses.front(), 1.61, 0.5);
  float last = 0;
  for (size_t i = 90; i < 100; ++i) last += losses[i] / 10;
  EXPECT_LT(last, 1.2);
  EXPECT_GT(session.OutcomeOf(0).seen_accuracy(), 0.5);
}

TEST(PackRunnerTest, MissingDeviceErrorListsDevices) {
  const auto runner = CreatePackRunner({.device = "cuda:7777"});
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(runner.status().message(), HasSubstr("available: cpu"));
}

TEST(PackRunnerTest, CpuPacksHaveOneTrial) {
  EXPECT_EQ(CreatePackRunner({.device = "cpu", .threads = 1}).value()->max_pack_size(), 1);
}

}  // namespace
}  // namespace lengthwise::worker
