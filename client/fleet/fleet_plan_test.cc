#include "client/fleet/fleet_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using State = FleetJob::State;

class FleetPlannerTest : public testing::Test {
 protected:
  FleetPlanner::Plan Next() { return planner_.Next(view_, now_); }

  FleetPlanner planner_{{.max_jobs = 5, .backlog = 3}};
  FleetView view_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
};

TEST_F(FleetPlannerTest, SubmitsAJobForEachPackUpToTheBacklog) {
  EXPECT_EQ(Next().submit, 0);
  view_.runnable_packs = 2;
  EXPECT_EQ(Next().submit, 2);
  view_.runnable_packs = 100;
  EXPECT_EQ(Next().submit, 3) << "the backlog";
}

TEST_F(FleetPlannerTest, JobsAndIdleWorkersTakeTheFirstPacks) {
  view_.runnable_packs = 4;
  view_.idle_workers = 1;
  view_.jobs = {{.id = 1, .state = State::kPending}, {.id = 2, .state = State::kRunning}};
  EXPECT_EQ(Next().submit, 1) << "job 2 has not reached the server yet";
  view_.alive = view_.registered = {2};
  EXPECT_EQ(Next().submit, 2) << "job 2 works";
}

TEST_F(FleetPlannerTest, NeverPassesTheMaximum) {
  view_.runnable_packs = 100;
  for (int64_t id = 1; id <= 4; ++id) {
    view_.jobs.push_back({.id = id, .state = State::kRunning});
    view_.alive.insert(id);
    view_.registered.insert(id);
  }
  EXPECT_EQ(Next().submit, 1);
  view_.jobs.push_back({.id = 5, .state = State::kPending});
  EXPECT_EQ(Next().submit, 0);
  EXPECT_THAT(Next().held_back, HasSubstr("--max"));
}

TEST_F(FleetPlannerTest, ForgottenIdleWorkersAreNoFailures) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 4; ++id) {
    view_.jobs.push_back({.id = id, .state = State::kRunning});
    view_.alive.insert(id);
    view_.registered.insert(id);
  }
  EXPECT_EQ(Next().submit, 1);
  planner_.Submitted(5);
  // All jobs trained and ended. Next was not called, because nothing waited.
  now_ += absl::Minutes(20);
  view_ = {};
  view_.runnable_packs = 10;
  EXPECT_EQ(Next().submit, 3) << Next().held_back;
}

TEST_F(FleetPlannerTest, UnlistedJobsAreFailedStarts) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) {
    EXPECT_GT(Next().submit, 0);
    planner_.Submitted(id);
    now_ += absl::Seconds(3);
  }
  EXPECT_EQ(Next().submit, 0);
  EXPECT_THAT(Next().held_back, HasSubstr("3 jobs in a row"));
}

TEST_F(FleetPlannerTest, FailedStartsInARowPauseTheFleet) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) view_.jobs.push_back({.id = id, .state = State::kEnded});
  EXPECT_EQ(Next().submit, 0);
  EXPECT_EQ(Next().failed_job, 3);
  EXPECT_THAT(Next().held_back, HasSubstr("3 jobs in a row"));
  // The cluster forgets them earlier than the planner.
  view_.jobs.clear();
  now_ += absl::Minutes(4);
  EXPECT_EQ(Next().submit, 0);
  now_ += absl::Minutes(2);
  EXPECT_EQ(Next().submit, 3);
}

TEST_F(FleetPlannerTest, ConnectedWorkerEndsThePause) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) view_.jobs.push_back({.id = id, .state = State::kEnded});
  EXPECT_EQ(Next().submit, 0);
  view_.jobs.push_back({.id = 4, .state = State::kRunning});
  view_.registered = view_.alive = {4};
  EXPECT_EQ(Next().submit, 3);
}

// Otherwise workers that register, take a pack and crash would be submitted forever.
TEST_F(FleetPlannerTest, CrashesInARowPauseTheFleet) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) {
    EXPECT_GT(Next().submit, 0) << id;
    view_.jobs.push_back({.id = id, .state = State::kRunning});
    view_.registered.insert(id);
    view_.alive = {id};
    EXPECT_GT(Next().submit, 0) << id;
    now_ += absl::Seconds(40);
    // The server considers it alive until its lease expires.
    view_.jobs.back() = {.id = id, .state = State::kFailed, .reason = "OutOfMemory"};
  }
  EXPECT_EQ(Next().submit, 0);
  EXPECT_EQ(Next().failed_job, 3);
  EXPECT_EQ(Next().held_back, "3 jobs in a row failed, the last is job 3 (OutOfMemory)");
  // The cluster still lists them.
  now_ += absl::Minutes(5);
  EXPECT_GT(Next().submit, 0);
  now_ += absl::Seconds(3);
  EXPECT_GT(Next().submit, 0) << "the same failures do not pause it twice";
}

TEST_F(FleetPlannerTest, CrashesMinutesApartPauseTheFleetFromTheLast) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) {
    EXPECT_GT(Next().submit, 0) << id;
    now_ += absl::Seconds(160);
    view_.jobs.push_back({.id = id, .state = State::kFailed});
    view_.registered.insert(id);
  }
  EXPECT_EQ(Next().failed_job, 3);
  now_ += absl::Seconds(299);
  EXPECT_EQ(Next().submit, 0);
  now_ += absl::Seconds(1);
  EXPECT_GT(Next().submit, 0);
}

// The cluster still lists them, and this program may have just started.
TEST_F(FleetPlannerTest, OldFailuresDoNotPauseTheFleet) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) {
    view_.jobs.push_back(
        {.id = id, .state = State::kFailed, .ended = now_ - absl::Minutes(5) - absl::Seconds(id)});
    view_.registered.insert(id);
  }
  EXPECT_GT(Next().submit, 0);
}

TEST_F(FleetPlannerTest, SuccessfulJobDisprovesEarlierCrashes) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) {
    view_.jobs.push_back({.id = id, .state = State::kFailed});
    view_.registered.insert(id);
  }
  view_.jobs.push_back({.id = 4, .state = State::kRunning});
  view_.registered.insert(4);
  view_.alive = {4};
  EXPECT_EQ(Next().submit, 0) << "the fourth may crash, too";
  view_.jobs.back().state = State::kEnded;
  EXPECT_EQ(Next().submit, 3);
}

TEST_F(FleetPlannerTest, CancelledAndWorkingJobsAreNoFailures) {
  view_.runnable_packs = 10;
  view_.jobs = {{.id = 1, .state = State::kCancelled},
                {.id = 2, .state = State::kCancelled},
                {.id = 3, .state = State::kCancelled},
                {.id = 4, .state = State::kEnded}};
  view_.registered = {4};
  EXPECT_EQ(Next().submit, 3);
}

TEST_F(FleetPlannerTest, JobsThatVanishBetweenCallsCount) {
  view_.runnable_packs = 10;
  for (int64_t id = 1; id <= 3; ++id) view_.jobs.push_back({.id = id, .state = State::kRunning});
  EXPECT_EQ(Next().submit, 2);
  view_.jobs.clear();
  EXPECT_EQ(Next().submit, 0);
}

TEST_F(FleetPlannerTest, HopelessJobStopsSubmission) {
  view_.runnable_packs = 10;
  view_.jobs = {{.id = 7, .state = State::kPending, .reason = "PartitionConfig"}};
  EXPECT_EQ(Next().submit, 0);
  EXPECT_THAT(Next().held_back, HasSubstr("no node can run job 7 (PartitionConfig)"));
  view_.runnable_packs = 1;
  EXPECT_THAT(Next().held_back, HasSubstr("no node can run job 7")) << "it takes no pack";
  view_.runnable_packs = 10;
  view_.jobs[0].reason = "Resources";
  EXPECT_EQ(Next().submit, 2);
}

TEST_F(FleetPlannerTest, RefusalPauses) {
  view_.runnable_packs = 10;
  planner_.Refused("Requested node configuration is not available", now_);
  EXPECT_EQ(Next().submit, 0);
  EXPECT_THAT(Next().held_back, HasSubstr("Requested node configuration is not available"));
  now_ += absl::Minutes(5);
  EXPECT_EQ(Next().submit, 3);
}

}  // namespace
}  // namespace lengthwise::client
