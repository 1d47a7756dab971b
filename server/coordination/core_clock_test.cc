// Behaviour when a user or a time server sets the clock, and when time passes without the server.
#include <cstdint>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/timestamps.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// When the coordinator's clock starts.
constexpr absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class CoreClockTest : public testing::TestWithParam<absl::Duration> {
 protected:
  CoreClockTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
    experiment_ = coordinator_.Create("sort", 1, 1);
    lease_ = coordinator_.Acquire("w");
    EXPECT_EQ(lease_.trials_size(), 1);
  }

  void Restart(absl::Duration clock_set_by) {
    coordinator_.Close();
    coordinator_.SetWallClock(clock_set_by);
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  // Lets the trial fail for the first time. It is tried again after the first back-off.
  void Fail() {
    ASSERT_EQ(coordinator_
                  .Send(lease_, {OutcomeEvent(lease_, 0, 1, 0, v1::Outcome::FAILED_TEMPORARILY,
                                              "the disk is full")})
                  ->acknowledged_sequence(),
              1);
  }

  TestCoordinator coordinator_;
  std::string experiment_;
  v1::Lease lease_;
};

TEST_P(CoreClockTest, LeaseSurvivesAClockChange) {
  coordinator_.SetWallClock(GetParam());
  EXPECT_FALSE(coordinator_.Heartbeat("w", {lease_})->leases(0).lost());
  EXPECT_EQ(coordinator_.Send(lease_, {PointsEvent(lease_, 0, 1, 1)})->acknowledged_sequence(), 1);
  EXPECT_EQ(coordinator_->GetStatistics().lease_expiries, 0);
}

TEST_P(CoreClockTest, RegressionWorkerSurvivesAClockChange) {
  coordinator_.SetWallClock(GetParam());
  // A query before the worker's next call.
  EXPECT_EQ(coordinator_->GetStatistics().workers.size(), 1);
  ASSERT_EQ(coordinator_->reads().ListWorkers().workers_size(), 1);
  EXPECT_TRUE(coordinator_->reads().ListWorkers().workers(0).alive());
  ASSERT_EQ(coordinator_.Heartbeat("w", {lease_}).status(), absl::OkStatus());
  EXPECT_EQ(coordinator_->GetStatistics().workers.size(), 1);
  EXPECT_EQ(coordinator_->reads().ListWorkers().workers_size(), 1);
}

TEST_P(CoreClockTest, WrongClockOfAWorkerIsNamed) {
  v1::SynchronizeRequest call = coordinator_.CallOf("w");
  call.set_session("another process");
  *call.mutable_measurements()->mutable_time() = ToTimestamp(kNow + GetParam());
  testing::internal::CaptureStderr();
  ASSERT_EQ(coordinator_.Later(call).get().status(), absl::OkStatus());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(" WARNING the clock of worker w is "),
                    HasSubstr(GetParam() > absl::ZeroDuration() ? " ahead of this machine's"
                                                                : " behind this machine's")));
  const double seconds = absl::ToDoubleSeconds(GetParam());
  EXPECT_EQ(coordinator_->reads().ListWorkers().workers(0).clock_ahead_seconds(), seconds);
  EXPECT_EQ(coordinator_->GetStatistics().workers.at(0).clock_ahead_seconds, seconds);
}

TEST_P(CoreClockTest, EventsHaveTimesOfTheServersClock) {
  v1::StreamEventsRequest batch;
  batch.set_lease_id(lease_.lease_id());
  batch.set_fencing_token(lease_.fencing_token());
  const auto store = [&] {
    std::promise<absl::Status> stored;
    coordinator_->loop().Post<v1::StreamEventsResponse>(
        [&] { return coordinator_->intake().Store(batch, "anonymous"); },
        [&](const auto& response) { stored.set_value(response.status()); });
    EXPECT_EQ(stored.get_future().get(), absl::OkStatus());
    return ToTime(coordinator_.History(experiment_).back().time());
  };
  const auto send = [&](absl::Duration ahead, int64_t sequence) {
    batch.clear_events();
    v1::Event& event = *batch.add_events();
    event = PointsEvent(lease_, 0, sequence, sequence);
    // Spooled for 20 s.
    *event.mutable_time() = ToTimestamp(kNow + ahead - absl::Seconds(20));
    *batch.mutable_time() = ToTimestamp(kNow + ahead);
    return store();
  };
  EXPECT_EQ(send(GetParam(), 1), kNow - absl::Seconds(20));
  EXPECT_EQ(send(absl::Seconds(1), 2), kNow - absl::Seconds(19)) << "the delay of a message";
  // A worker may send any number, which does not end the server.
  batch.clear_events();
  *batch.add_events() = PointsEvent(lease_, 0, 3, 3);
  batch.mutable_time()->set_seconds(GetParam() > absl::ZeroDuration() ? INT64_MAX : INT64_MIN);
  EXPECT_NE(store(), kNow);
}

TEST_P(CoreClockTest, LeaseStillExpires) {
  coordinator_.SetWallClock(GetParam());
  coordinator_.Advance(absl::Seconds(31));
  EXPECT_EQ(coordinator_->GetStatistics().lease_expiries, 1);
}

TEST_P(CoreClockTest, LeaseSurvivesARestartAtAnotherTime) {
  Restart(GetParam());
  EXPECT_FALSE(coordinator_.Heartbeat("w", {lease_})->leases(0).lost());
  coordinator_.Advance(absl::Seconds(29));
  EXPECT_EQ(coordinator_.Send(lease_, {PointsEvent(lease_, 0, 1, 1)})->acknowledged_sequence(), 1);
}

TEST_P(CoreClockTest, FailedTrialWaitsAtMostItsBackOff) {
  Fail();
  EXPECT_EQ(coordinator_.Acquire("w").trials_size(), 0);
  Restart(GetParam());
  // Not the maximum back-off: that of this failure.
  coordinator_.Advance(Scheduler::Options().first_back_off);
  const v1::Lease next = coordinator_.Acquire("w");
  ASSERT_EQ(next.trials_size(), 1);
  EXPECT_EQ(next.trials(0).attempt(), 2);
}

TEST_P(CoreClockTest, RegressionRestartDoesNotRestartABackOff) {
  Fail();
  const absl::Duration half = Scheduler::Options().first_back_off / 2;
  Restart(GetParam());
  coordinator_.Advance(half);
  Restart(absl::ZeroDuration());
  coordinator_.Advance(half);
  EXPECT_EQ(coordinator_.Acquire("w").trials_size(), 1);
}

// A server whose process is stopped, or whose disk hangs or starts slowly.
class CorePauseTest : public testing::Test {
 protected:
  void Start() {
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
    coordinator_.Create("sort", 1, 1);
    lease_ = coordinator_.Acquire("w");
    ASSERT_EQ(lease_.trials_size(), 1);
  }
  int64_t expired() { return coordinator_->GetStatistics().lease_expiries; }

  TestCoordinator coordinator_;
  v1::Lease lease_;
};

TEST_F(CorePauseTest, LeaseOutlivesAStoppedServer) {
  Start();
  coordinator_.Pause(absl::Minutes(5));
  EXPECT_EQ(expired(), 0);
  EXPECT_TRUE(coordinator_->reads().ListWorkers().workers(0).alive());
  coordinator_.Advance(absl::Seconds(26));
  EXPECT_EQ(expired(), 0);
  coordinator_.Advance(absl::Seconds(1));
  EXPECT_EQ(expired(), 1) << "the server has listened for a whole lease duration";
}

TEST_F(CorePauseTest, QueuedHeartbeatRenewsItsLease) {
  Start();
  std::latch free(1);
  const auto post = [&](const std::function<void()>& run) {
    coordinator_->loop().PostCommand({.apply = [run]() -> CommandLoop::Answer {
                                        run();
                                        return nullptr;
                                      },
                                      .fail = [](const absl::Status&) {},
                                      .ends_group = true});
  };
  // A slow command, and others behind it, each of which is a group.
  post([&] { free.wait(); });
  std::promise<bool> lost;
  const v1::SynchronizeRequest request = coordinator_.CallOf("w", {lease_});
  for (int second = 1; second <= 40; ++second) {
    coordinator_.MoveClock(absl::Seconds(1));
    post([] {});
    if (second != 20) continue;
    PostCall(*coordinator_, request, "anonymous",
             [&](const absl::StatusOr<v1::SynchronizeResponse>& response) {
               lost.set_value(!response.ok() || response->leases(0).lost());
             });
  }
  free.count_down();
  EXPECT_FALSE(lost.get_future().get());
  coordinator_->loop().Flush();
  EXPECT_EQ(expired(), 0);
}

// A storage in which time passes whenever it is read.
class SlowStorage final : public Storage {
 public:
  SlowStorage(std::unique_ptr<Storage> storage, std::function<void()> pass_time)
      : storage_(std::move(storage)), pass_time_(std::move(pass_time)) {}
  StorageWriter& writer() override { return storage_->writer(); }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override {
    pass_time_();
    return storage_->Read();
  }
  int64_t SizeBytes() const override { return storage_->SizeBytes(); }
  const LeaseKey& lease_key() const override { return storage_->lease_key(); }

 private:
  const std::unique_ptr<Storage> storage_;
  const std::function<void()> pass_time_;
};

TEST_F(CorePauseTest, LeaseOutlivesASlowStart) {
  Start();
  coordinator_.Close();
  coordinator_.set_wrap_storage([this](std::unique_ptr<Storage> storage) {
    return std::make_unique<SlowStorage>(std::move(storage),
                                         [this] { coordinator_.MoveClock(absl::Minutes(1)); });
  });
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  coordinator_->loop().Flush();
  EXPECT_EQ(expired(), 0);
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  EXPECT_FALSE(coordinator_.Heartbeat("w", {lease_})->leases(0).lost());
}

INSTANTIATE_TEST_SUITE_P(Jumps, CoreClockTest,
                         testing::Values(absl::Hours(24), -absl::Hours(24), absl::Hours(24 * 3650),
                                         -absl::Hours(24 * 3650)));

}  // namespace
}  // namespace lengthwise::server
