// Tests runs on a device that can record steps.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/tiny_trials.h"
#include "worker/training/device.h"
#include "worker/training/pack_run.h"
#include "worker/training/recording_session.h"
#include "worker/training/replaying_graphs.h"

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
  EXPECT_EQ(PackRun(lease, {0}, device, session, /*sharing=*/nullptr).Run(),
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

}  // namespace
}  // namespace lengthwise::worker::training
