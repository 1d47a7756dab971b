// Tests training that ends or is interrupted before its last step.
#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/pack_session.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/testing/pack_runner_fixture.h"
#include "worker/training/testing/recording_session.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Directive = PackSession::Directive;

// Returns the accuracies of the evaluations during training at length 9, the only unseen one.
std::vector<double> UnseenAccuracies(const std::vector<v1::Event>& events) {
  std::vector<double> accuracies;
  for (const v1::Event& event : events) {
    if (!event.has_length_accuracies() || event.length_accuracies().final()) continue;
    EXPECT_THAT(event.length_accuracies().lengths(), ElementsAre(3, 9));
    accuracies.push_back(event.length_accuracies().accuracies(1));
  }
  return accuracies;
}

// A trial that learns quickly: 60 steps, evaluated every 10.
v1::TrialSpecification EasyTrial(uint64_t seed) {
  v1::TrialSpecification trial = TinyTrial(seed);
  trial.mutable_task()->set_name("bucket_sort");
  trial.set_learning_rate(5e-3);
  trial.mutable_training()->set_steps(60);
  trial.mutable_training()->set_checkpoint_every_steps(25);
  trial.mutable_evaluation()->set_every_steps(10);
  trial.mutable_evaluation()->set_interval_sequences(32);
  return trial;
}

TEST(PackRunnerStopTest, EachMemberStopsAtItsTarget) {
  std::vector<v1::TrialSpecification> trials = {EasyTrial(1), EasyTrial(2), EasyTrial(3)};
  // Accuracies without a target determine when each trial stops with one.
  std::vector<std::vector<double>> accuracies;
  double target = 0;
  for (const v1::TrialSpecification& trial : trials) {
    RecordingSession session;
    RunLease(LeaseOf({trial}), session);
    accuracies.push_back(UnseenAccuracies(session.events(0)));
    ASSERT_EQ(accuracies.back().size(), 6);
    // The target is the best of the slowest member's first five evaluations.
    const double best = *std::max_element(accuracies.back().begin(), accuracies.back().begin() + 5);
    target = target == 0 ? best : std::min(target, best);
  }
  for (v1::TrialSpecification& trial : trials) {
    trial.mutable_training()->set_stop_at_accuracy(target);
    trial.mutable_evaluation()->set_select("unseen");
  }
  RecordingSession session;
  RunLease(LeaseOf(trials), session);
  std::set<int64_t> stops;
  for (int i = 0; i < 3; ++i) {
    const std::vector<double>& own = accuracies[static_cast<size_t>(i)];
    const auto reached =
        std::find_if(own.begin(), own.end(), [=](double value) { return value >= target; });
    const int64_t stop = 10 * (reached - own.begin() + 1);
    stops.insert(stop);
    ASSERT_LT(stop, 60);
    const v1::Outcome outcome = session.OutcomeOf(i);
    EXPECT_EQ(outcome.kind(), v1::Outcome::COMPLETED) << outcome.reason();
    EXPECT_EQ(outcome.training_steps(), stop);
    EXPECT_THAT(outcome.stop_reason(), HasSubstr("training.stop_at_accuracy"));
    EXPECT_GT(outcome.training_seconds(), 0);
    // The last events of training, then those after it.
    const std::string step = " " + std::to_string(stop);
    const std::vector<std::string> outline = Outline(session.events(i));
    EXPECT_THAT(std::vector<std::string>(outline.end() - 6, outline.end()),
                ElementsAre("point" + step, "evaluation" + step, "checkpoint" + step,
                            "final" + step, "attention" + step, "outcome" + step));
    EXPECT_EQ(session.History(i), HistoryAlone(trials[static_cast<size_t>(i)])) << i;
  }
  EXPECT_GT(stops.size(), 1) << "all trials stop at the same step, which tests nothing";
}

TEST(PackRunnerStopTest, ResumedTrialStopsAtTheSameStep) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_stop_at_accuracy(0.01);
  RecordingSession undisturbed;
  RunLease(LeaseOf({trial}), undisturbed);
  ASSERT_EQ(undisturbed.OutcomeOf(0).training_steps(), 15);
  for (int64_t lost_at = 0; lost_at < undisturbed.asked(); ++lost_at) {
    v1::Lease lease = LeaseOf({trial});
    RecordingSession session;
    session.directive = [=](int64_t, int64_t asked) {
      return asked >= lost_at ? Directive::kLost : Directive::kContinue;
    };
    RunLease(lease, session);
    session.directive = nullptr;
    session.Rewind(lease);
    RunLease(lease, session);
    EXPECT_EQ(session.History(0), undisturbed.History(0)) << lost_at;
  }
}

// Returns the events of a trial except checkpoints, of which a drained trial has more.
std::vector<std::string> HistoryWithoutCheckpoints(RecordingSession& session) {
  std::vector<std::string> history = session.History(0);
  std::erase_if(history, [](const std::string& fact) {
    return fact.find("checkpoint {") != std::string::npos;
  });
  return history;
}

// The checkpoint interval has passed at every step, so the places of checkpoints do not depend on
// the clock.
TEST(PackRunnerStopTest, TimedCheckpointsDoNotChangeResults) {
  v1::TrialSpecification trial = TinyTrial(1);
  RecordingSession undisturbed;
  RunLease(LeaseOf({trial}), undisturbed);
  trial.mutable_training()->clear_checkpoint_every_steps();
  trial.mutable_training()->set_checkpoint_every_seconds(1e-9);
  RecordingSession timed;
  RunLease(LeaseOf({trial}), timed);
  int64_t checkpoints = 0;
  for (const v1::Event& event : timed.events(0)) checkpoints += event.has_checkpoint() ? 1 : 0;
  EXPECT_EQ(checkpoints, trial.training().steps());
  EXPECT_EQ(HistoryWithoutCheckpoints(timed), HistoryWithoutCheckpoints(undisturbed));

  for (const int64_t lost_at : {int64_t{3}, timed.asked() / 2, timed.asked() - 2}) {
    v1::Lease lease = LeaseOf({trial});
    RecordingSession session;
    session.directive = [=](int64_t, int64_t asked) {
      return asked >= lost_at ? Directive::kLost : Directive::kContinue;
    };
    RunLease(lease, session);
    session.directive = nullptr;
    session.Rewind(lease);
    EXPECT_GT(lease.trials(0).checkpoint_step(), 0);
    RunLease(lease, session);
    EXPECT_EQ(HistoryWithoutCheckpoints(session), HistoryWithoutCheckpoints(undisturbed));
  }

  trial.mutable_training()->set_checkpoint_every_seconds(3600);
  RecordingSession rarely;
  RunLease(LeaseOf({trial}), rarely);
  checkpoints = 0;
  for (const v1::Event& event : rarely.events(0)) checkpoints += event.has_checkpoint() ? 1 : 0;
  EXPECT_EQ(checkpoints, 1) << "at the end only";
}

TEST(PackRunnerStopTest, InterruptedEvaluationRunsAfterResume) {
  v1::TrialSpecification evaluated_last = TinyTrial(1);
  evaluated_last.mutable_training()->set_steps(30);
  v1::TrialSpecification stopped = TinyTrial(1);
  stopped.mutable_training()->set_stop_at_accuracy(0.01);
  // The last step has a point that only running the step can produce.
  v1::TrialSpecification stopped_between_points = stopped;
  stopped_between_points.mutable_training()->set_report_every_steps(4);
  for (const v1::TrialSpecification& trial :
       {TinyTrial(1), evaluated_last, stopped, stopped_between_points}) {
    const bool finishes = trial.training().report_every_steps() == 4;
    RecordingSession undisturbed;
    RunLease(LeaseOf({trial}), undisturbed);
    int interrupted = 0;
    for (int64_t drained_at = 0; drained_at < undisturbed.asked(); ++drained_at) {
      SCOPED_TRACE(drained_at);
      v1::Lease lease = LeaseOf({trial});
      RecordingSession session;
      session.directive = [=](int64_t, int64_t asked) {
        return asked >= drained_at ? Directive::kDrain : Directive::kContinue;
      };
      RunLease(lease, session);
      if (!finishes) {
        EXPECT_EQ(session.asked(), drained_at + 1) << "the run continues although it drains";
      }
      const std::vector<std::string> outline = Outline(session.events(0));
      const bool at_15 = !outline.empty() && outline.back() == "checkpoint 15";
      const bool evaluated =
          std::find(outline.begin(), outline.end(), "evaluation 15") != outline.end();
      interrupted += at_15 && !evaluated;
      // Drains once more while the resumed run catches up, or right after it.
      for (const int64_t again : {1, 3}) {
        session.directive = [again, first = session.asked()](int64_t, int64_t asked) {
          return asked - first >= again ? Directive::kDrain : Directive::kContinue;
        };
        session.Rewind(lease);
        RunLease(lease, session);
      }
      session.directive = nullptr;
      session.Rewind(lease);
      RunLease(lease, session);
      EXPECT_EQ(HistoryWithoutCheckpoints(session), HistoryWithoutCheckpoints(undisturbed));
      // The last checkpoint equals that of the uninterrupted trial.
      EXPECT_EQ(*session.checkpoints(0).rbegin(), *undisturbed.checkpoints(0).rbegin());
    }
    EXPECT_EQ(interrupted > 0, !finishes);
  }
}

TEST(PackRunnerStopTest, CancellationEndsIntervalEvaluation) {
  class CountingSession : public RecordingSession {
   public:
    void CountEvaluation(double) override { ++evaluations; }
    int evaluations = 0;  // completed
  };
  CountingSession undisturbed;
  RunLease(LeaseOf({TinyTrial(1)}), undisturbed);
  ASSERT_EQ(undisturbed.evaluations, 3);
  for (int64_t cancelled_at = 0; cancelled_at < undisturbed.asked(); ++cancelled_at) {
    CountingSession session;
    int before = 0;
    session.directive = [&](int64_t, int64_t asked) {
      if (asked < cancelled_at) return Directive::kContinue;
      before = session.evaluations;
      return Directive::kCancelled;
    };
    RunLease(LeaseOf({TinyTrial(1)}), session);
    EXPECT_EQ(session.evaluations, before) << cancelled_at;
  }
}

TEST(PackRunnerStopTest, NoMapIsMadeForATrialThatMustStop) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_evaluation()->set_attention_sequences(3);
  RecordingSession undisturbed;
  RunLease(LeaseOf({trial}), undisturbed);
  const auto count_maps = [](RecordingSession& session) {
    return std::count_if(session.events(0).begin(), session.events(0).end(),
                         [](const v1::Event& event) { return event.has_attention_map(); });
  };
  const int64_t all = count_maps(undisturbed);
  ASSERT_GE(all, 3);
  for (const Directive stop : {Directive::kCancelled, Directive::kDrain, Directive::kLost}) {
    std::set<int64_t> made;
    for (int64_t stopped_at = 0; stopped_at < undisturbed.asked(); ++stopped_at) {
      RecordingSession session;
      int64_t before = 0;
      session.directive = [&](int64_t, int64_t asked) {
        if (asked < stopped_at) return Directive::kContinue;
        before = count_maps(session);
        return stop;
      };
      RunLease(LeaseOf({trial}), session);
      EXPECT_EQ(count_maps(session), before) << stopped_at;
      made.insert(before);
    }
    EXPECT_EQ(made.size(), static_cast<size_t>(all)) << "it can stop before each";
  }
}

TEST(PackRunnerStopTest, TrainingStopsAtItsTimeLimit) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_stop_after_seconds(1e-9);
  RecordingSession session;
  RunLease(LeaseOf({trial}), session);
  EXPECT_THAT(Outline(session.events(0)),
              ElementsAre("point 1", "checkpoint 1", "final 1", "attention 1", "outcome 1"));
  const v1::Outcome outcome = session.OutcomeOf(0);
  EXPECT_EQ(outcome.kind(), v1::Outcome::COMPLETED) << outcome.reason();
  EXPECT_EQ(outcome.training_steps(), 1);
  EXPECT_THAT(outcome.stop_reason(), HasSubstr("training.stop_after_seconds"));
}

TEST(PackRunnerStopTest, TargetAtTheLastStepStopsNothing) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_steps(15);
  trial.mutable_training()->set_stop_at_accuracy(0.01);
  RecordingSession accurate;
  RunLease(LeaseOf({trial}), accurate);
  EXPECT_EQ(accurate.OutcomeOf(0).training_steps(), 15);
  EXPECT_EQ(accurate.OutcomeOf(0).stop_reason(), "");
  trial.mutable_training()->set_steps(1);
  trial.mutable_training()->set_stop_after_seconds(1e-9);
  RecordingSession timed;
  RunLease(LeaseOf({trial}), timed);
  EXPECT_EQ(timed.OutcomeOf(0).stop_reason(), "");
  EXPECT_THAT(Outline(timed.events(0)),
              ElementsAre("point 1", "checkpoint 1", "final 1", "attention 1", "outcome 1"));
}

// The checkpoint holds the seconds and the reason.
TEST(PackRunnerStopTest, StoppedTrialResumesWithTheEvaluation) {
  v1::TrialSpecification trial = TinyTrial(1);
  trial.mutable_training()->set_stop_after_seconds(1e-9);
  v1::Lease lease = LeaseOf({trial});
  RecordingSession session;
  RunLease(lease, session);
  const v1::Outcome first = session.OutcomeOf(0);
  session.Rewind(lease);
  RunLease(lease, session);
  EXPECT_THAT(Outline(session.events(0)),
              ElementsAre("point 1", "checkpoint 1", "final 1", "attention 1", "outcome 1"));
  const v1::Outcome second = session.OutcomeOf(0);
  EXPECT_EQ(second.training_seconds(), first.training_seconds());
  EXPECT_EQ(second.stop_reason(), first.stop_reason());
  EXPECT_EQ(second.training_steps(), 1);
}

TEST(PackRunnerStopTest, TrainingSecondsSpanAttempts) {
  for (const bool timed : {false, true}) {
    v1::TrialSpecification trial = TinyTrial(1);
    if (timed) trial.mutable_training()->set_stop_after_seconds(3600);
    v1::Lease lease = LeaseOf({trial});
    RecordingSession session;
    session.directive = [](int64_t, int64_t asked) {
      return asked >= 39 ? Directive::kDrain : Directive::kContinue;
    };
    RunLease(lease, session);
    session.directive = nullptr;
    session.Rewind(lease);
    const int64_t resumed_from = lease.trials(0).checkpoint_step();
    ASSERT_GT(resumed_from, 15);
    RunLease(lease, session);
    const v1::Outcome outcome = session.OutcomeOf(0);
    EXPECT_EQ(outcome.training_steps(), 40);
    EXPECT_EQ(outcome.stop_reason(), "");
    double before = 0;
    for (const v1::Event& event : session.events(0)) {
      if (!event.has_length_accuracies()) continue;
      const double seconds = event.length_accuracies().training_seconds();
      EXPECT_GT(seconds, 0);
      // Estimated seconds need not ascend.
      EXPECT_TRUE(!timed || seconds > before);
      before = seconds;
    }
    EXPECT_EQ(before, outcome.training_seconds());
  }
}

// Checkpoints of trials without a time limit must hold no time, so that their bytes are the same in
// every run. Those of the others must.
TEST(PackRunnerStopTest, OnlyTimeLimitedCheckpointsCarrySeconds) {
  v1::TrialSpecification trial = TinyTrial(1);
  for (const bool timed : {false, true}) {
    if (timed) trial.mutable_training()->set_stop_after_seconds(3600);
    RecordingSession session;
    RunLease(LeaseOf({trial}), session);
    for (const auto& [step, bytes] : session.checkpoints(0)) {
      EXPECT_EQ(bytes.find("training_seconds") != std::string::npos, timed) << step;
    }
  }
}

}  // namespace
}  // namespace lengthwise::worker
