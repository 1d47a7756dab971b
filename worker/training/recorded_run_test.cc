// Tests runs on a device that can record steps.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/pack_session.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/device.h"
#include "worker/training/pack_run.h"
#include "worker/training/testing/recording_session.h"
#include "worker/training/testing/replaying_graphs.h"

namespace lengthwise::worker::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct History {
  // Losses of all points of the loss curve.
  std::vector<float> losses;
  std::vector<std::string> warnings;
};

// Runs a trial whose steps can or cannot be recorded.
History Train(bool can_record, GraphCounts& counts) {
  Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  device.make_graph_pool = [&counts, can_record] {
    return std::make_unique<ReplayingGraphs>(counts, can_record);
  };
  RecordingSession session;
  const v1::Lease lease = LeaseOf({TinyTrial()});
  EXPECT_EQ(PackRun(lease, {0}, device, session, /*sharing=*/nullptr).Run().value(),
            PackRun::End::kComplete);
  History history;
  for (const v1::Event& event : session.events(0)) {
    const auto& losses = event.training_points().losses();
    history.losses.insert(history.losses.end(), losses.begin(), losses.end());
    if (event.log_line().severity() == v1::LogLine::WARNING) {
      history.warnings.push_back(event.log_line().text());
    }
  }
  return history;
}

TEST(RecordedRunTest, UnrecordableStepsRunWithAWarning) {
  GraphCounts counts, no_counts;
  const History recorded = Train(true, counts), refused = Train(false, no_counts);
  EXPECT_GT(counts.replayed, 0);
  EXPECT_THAT(recorded.warnings, IsEmpty());
  EXPECT_THAT(refused.warnings, ElementsAre(HasSubstr("not permitted while recording")));
  EXPECT_FALSE(recorded.losses.empty());
  EXPECT_EQ(refused.losses, recorded.losses);
}

// Runs leases on a device that overlaps steps, as a GPU, or on a CPU.
class OverlappedRunTest : public ::testing::Test {
 protected:
  PackRun::End Run(const v1::Lease& lease, bool overlapped, PackSession& session) {
    Device device = OpenDevice("cpu", 1).value();
    PrepareThread(device);
    if (overlapped) {
      device.make_graph_pool = [this] { return std::make_unique<ReplayingGraphs>(counts_); };
    }
    std::vector<int64_t> trials;
    for (int i = 0; i < lease.trials_size(); ++i) trials.push_back(i);
    return PackRun(lease, trials, device, session, /*sharing=*/nullptr).Run().value();
  }

  // Runs the lease both ways and compares all that the session receives.
  void ExpectSameFacts(const std::vector<v1::TrialSpecification>& trials) {
    const v1::Lease lease = LeaseOf(trials);
    RecordingSession overlapped, one_by_one;
    EXPECT_EQ(Run(lease, true, overlapped), PackRun::End::kComplete);
    EXPECT_EQ(Run(lease, false, one_by_one), PackRun::End::kComplete);
    for (int64_t i = 0; i < lease.trials_size(); ++i) {
      EXPECT_EQ(overlapped.History(i), one_by_one.History(i)) << i;
      EXPECT_EQ(overlapped.checkpoints(i), one_by_one.checkpoints(i)) << i;
    }
  }

  GraphCounts counts_;
};

// Training on one length, whose steps are replayed from the third one on.
v1::TrialSpecification OneLength(uint64_t seed = 0) {
  v1::TrialSpecification trial = TinyTrial(seed);
  trial.mutable_training()->mutable_lengths()->set_min(6);
  return trial;
}

TEST_F(OverlappedRunTest, MeasurementsAreReadDuringTheNextStep) {
  class Session : public RecordingSession {
   public:
    explicit Session(const GraphCounts& counts) : counts_(counts) {}
    // The second step and every later one are replayed.
    void CountStep(const StepTime&) override { started_.push_back(counts_.replayed + 1); }
    const std::vector<int64_t>& started() const { return started_; }

   private:
    const GraphCounts& counts_;
    // Steps started when a step's measurements were read.
    std::vector<int64_t> started_;
  };
  Session session(counts_);
  Run(LeaseOf({OneLength()}), true, session);
  ASSERT_EQ(session.started().size(), 40);
  EXPECT_EQ(session.started()[2], 4);
  EXPECT_EQ(session.started()[9], 10) << "a checkpoint needs the models after step 10";
  EXPECT_EQ(session.started()[10], 12);
  EXPECT_EQ(session.started()[14], 15) << "an evaluation needs them after step 15";
  EXPECT_EQ(session.started()[39], 40);
}

TEST_F(OverlappedRunTest, FactsAreThoseOfOneStepAtATime) {
  ExpectSameFacts({TinyTrial(1), OneLength(2)});
  // A loss that is not finite, at a step that overlaps.
  v1::TrialSpecification diverging = OneLength(1);
  diverging.set_learning_rate(1e30);
  ExpectSameFacts({diverging, OneLength(2)});
  v1::TrialSpecification stopping = TinyTrial(3);
  stopping.mutable_training()->set_stop_at_accuracy(0.1);
  ExpectSameFacts({stopping});
}

TEST_F(OverlappedRunTest, PlateauSeesTheLossInTime) {
  v1::TrialSpecification trial = OneLength();
  trial.mutable_training()->mutable_schedule()->set_name("plateau");
  auto& schedule = *trial.mutable_training()->mutable_schedule()->mutable_parameters();
  schedule["patience"].set_number_value(0);
  schedule["factor"].set_number_value(0.5);
  schedule["threshold"].set_number_value(0.5);
  for (const int every_steps : {1, 3}) {
    schedule["every_steps"].set_number_value(every_steps);
    ExpectSameFacts({trial});
  }
}

TEST_F(OverlappedRunTest, DrainAndCancellationFindTheSameModels) {
  const v1::TrialSpecification trial = OneLength();
  RecordingSession undisturbed;
  Run(LeaseOf({trial}), false, undisturbed);
  // Before a step that overlaps, and before one that does not.
  for (const int64_t drained : {5, 11}) {
    RecordingSession session;
    session.directive = [&](int64_t, int64_t asked) {
      return asked < drained ? PackSession::Directive::kContinue : PackSession::Directive::kDrain;
    };
    v1::Lease lease = LeaseOf({trial});
    EXPECT_EQ(Run(lease, true, session), PackRun::End::kDrained);
    EXPECT_EQ(session.checkpoints(0).rbegin()->first, drained);
    session.Rewind(lease);
    session.directive = nullptr;
    EXPECT_EQ(Run(lease, true, session), PackRun::End::kComplete);
    EXPECT_EQ(session.checkpoints(0)[40], undisturbed.checkpoints(0)[40]);
  }
  RecordingSession session;
  session.directive = [](int64_t trial, int64_t asked) {
    return trial == 0 && asked >= 10 ? PackSession::Directive::kCancelled
                                     : PackSession::Directive::kContinue;
  };
  EXPECT_EQ(Run(LeaseOf({OneLength(7), trial}), true, session), PackRun::End::kComplete);
  EXPECT_EQ(session.OutcomeOf(0).kind(), v1::Outcome::KIND_UNSPECIFIED);
  EXPECT_EQ(session.checkpoints(1), undisturbed.checkpoints(0));
}

TEST(PackMemoryTest, CapacityIsMeasuredAndReported) {
  class Session : public RecordingSession {
   public:
    void ReportCapacity(int64_t trials) override { reported.push_back(trials); }
    std::vector<int64_t> reported;
  };
  const auto report = [](int64_t used, int members) {
    Device device = OpenDevice("cpu", 1).value();
    EXPECT_EQ(device.memory, nullptr) << "a CPU's packs are of one";
    PrepareThread(device);
    int resets = 0;
    device.reset_peak_memory = [&] { ++resets; };
    device.memory = [&] { return DeviceMemory{.peak = resets * used, .usable = 1000}; };
    std::vector<v1::TrialSpecification> specifications;
    std::vector<int64_t> trials;
    for (int i = 0; i < members; ++i) {
      specifications.push_back(TinyTrial(static_cast<uint64_t>(i)));
      trials.push_back(i);
    }
    Session session;
    const v1::Lease lease = LeaseOf(specifications);
    EXPECT_TRUE(PackRun(lease, trials, device, session, /*sharing=*/nullptr).Run().ok());
    EXPECT_EQ(resets, 1);
    return session.reported.empty() ? -1 : session.reported.back();
  };
  EXPECT_EQ(report(90, 1), 10);
  EXPECT_EQ(report(300, 2), 6);
  EXPECT_EQ(report(950, 2), 2) << "it fitted";
  EXPECT_EQ(report(0, 2), -1);
}

TEST_F(OverlappedRunTest, LostLeaseWritesNothingMore) {
  RecordingSession session;
  session.directive = [](int64_t, int64_t asked) {
    return asked < 9 ? PackSession::Directive::kContinue : PackSession::Directive::kLost;
  };
  EXPECT_EQ(Run(LeaseOf({OneLength()}), true, session), PackRun::End::kLost);
  EXPECT_THAT(session.events(0), IsEmpty());
  EXPECT_EQ(counts_.alive, 0);
}

}  // namespace
}  // namespace lengthwise::worker::training
