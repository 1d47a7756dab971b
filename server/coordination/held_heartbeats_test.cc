// Heartbeats whose answers are held, on the real command loop and store. The clock stands still: an
// answer that comes was not waited for.
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// With the interval of a millisecond, a fleet is large from three workers on.
constexpr int kWorkers = 20;
constexpr absl::Duration kHold = absl::Milliseconds(10);

using Answer = absl::StatusOr<v1::HeartbeatResponse>;

class HeldHeartbeatsTest : public testing::Test {
 protected:
  HeldHeartbeatsTest() {
    coordinator_.options().heartbeat_interval = absl::Milliseconds(1);
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    for (int i = 0; i < kWorkers; ++i) Register(absl::StrCat("w", i));
  }

  void Register(const std::string& worker) {
    ASSERT_EQ(coordinator_.Register(worker), absl::OkStatus());
  }

  static v1::HeartbeatRequest Request(const std::string& worker, const v1::Lease& lease,
                                      absl::Duration wait) {
    v1::HeartbeatRequest request;
    request.set_worker_id(worker);
    request.mutable_wait()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(wait)));
    if (!lease.lease_id().empty()) {
      request.add_leases()->set_lease_id(lease.lease_id());
      request.mutable_leases(0)->set_fencing_token(lease.fencing_token());
    }
    return request;
  }

  // Queues a heartbeat. Without `lease`, of a worker without one.
  std::future<Answer> Beat(const std::string& worker, const v1::Lease& lease = {},
                           absl::Duration wait = absl::Milliseconds(500)) {
    auto answer = std::make_shared<std::promise<Answer>>();
    PostHeartbeat(*coordinator_, Request(worker, lease, wait), "anonymous",
                  [answer](Answer response) { answer->set_value(std::move(response)); });
    return answer->get_future();
  }

  // True if the answer is held, after all that was queued before.
  bool IsHeld(std::future<Answer>& answer) {
    coordinator_->loop().Flush();
    return answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }

  TestCoordinator coordinator_;
};

TEST_F(HeldHeartbeatsTest, CancellationEndsTheHold) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  auto answer = Beat("w0", lease);
  auto other = Beat("w1");
  ASSERT_TRUE(IsHeld(answer));
  EXPECT_EQ(coordinator_->held_heartbeats(), 2);
  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());
  const Answer told = answer.get();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(told->leases(0).cancelled_trials(), ElementsAre(lease.trials(0).trial()));
  EXPECT_FALSE(told->leases(0).lost());
  EXPECT_TRUE(IsHeld(other)) << "it has nothing to do with the trial";
}

// In one group of commands, in both orders: the directive is neither lost nor late.
TEST_F(HeldHeartbeatsTest, CancellationInTheSameGroupIsTold) {
  for (const bool cancelled_first : {false, true}) {
    coordinator_.Create("sort", 1, 1);
    const v1::Lease lease = coordinator_.Acquire("w0");
    std::promise<void> both_queued;
    std::shared_future<void> go = both_queued.get_future().share();
    PostHeartbeat(*coordinator_, Request("w1", {}, absl::ZeroDuration()), "anonymous",
                  [go](const auto&) { go.wait(); });
    std::future<Answer> answer;
    if (!cancelled_first) answer = Beat("w0", lease);
    std::promise<absl::Status> cancelled;
    v1::CancelTrialRequest cancel;
    cancel.set_name(lease.trials(0).trial());
    coordinator_->loop().Post<v1::Trial>(
        [&] { return coordinator_->experiments().CancelTrial(cancel, "ada"); },
        [&](const auto& trial) { cancelled.set_value(trial.status()); });
    if (cancelled_first) answer = Beat("w0", lease);
    both_queued.set_value();
    ASSERT_EQ(cancelled.get_future().get(), absl::OkStatus());
    const Answer told = answer.get();
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_THAT(told->leases(0).cancelled_trials(), ElementsAre(lease.trials(0).trial()));
    coordinator_.Release("w0", lease);
  }
}

TEST_F(HeldHeartbeatsTest, CancellationOfANewLeaseEndsTheHold) {
  auto answer = Beat("w0");
  ASSERT_TRUE(IsHeld(answer));
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  ASSERT_TRUE(IsHeld(answer));
  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());
  EXPECT_THAT(answer.get()->leases(), IsEmpty()) << "the heartbeat did not name the lease";
  EXPECT_THAT(Beat("w0", lease).get()->leases(0).cancelled_trials(),
              ElementsAre(lease.trials(0).trial()));
}

// The heartbeat was sent before the lease arrived, and comes after the cancellation was told in
// vain. Held, it would keep the worker from asking again.
TEST_F(HeldHeartbeatsTest, UntoldLeaseWithADirectiveIsNotHeld) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());
  EXPECT_THAT(Beat("w0").get()->leases(), IsEmpty());
  auto other = Beat("w1");
  EXPECT_TRUE(IsHeld(other)) << "it has no lease";
  EXPECT_THAT(Beat("w0", lease).get()->leases(0).cancelled_trials(),
              ElementsAre(lease.trials(0).trial()));
  coordinator_.Release("w0", lease);
  auto next = Beat("w0");
  EXPECT_TRUE(IsHeld(next)) << "the lease has ended, and its directive with it";
}

TEST_F(HeldHeartbeatsTest, LostWorkersDoNotLengthenTheHold) {
  coordinator_.Advance(absl::Seconds(31));
  Register("w0");
  coordinator_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Beat("w0").get().ok()) << "19 of 20 workers are lost: the fleet is small";
}

TEST_F(HeldHeartbeatsTest, PreemptionEndsTheHold) {
  coordinator_.Create("low", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  // A lease is preempted after a minute at the earliest. The other workers are silent meanwhile.
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(coordinator_.Heartbeat("w0", {lease})->leases(0).preempted());
    coordinator_.Advance(absl::Seconds(20));
  }
  // A large fleet again, in which nobody was heard of for long enough to be free.
  for (int i = 1; i < kWorkers; ++i) Register(absl::StrCat("w", i));
  coordinator_.Advance(absl::Seconds(6));
  auto answer = Beat("w0", lease);
  ASSERT_TRUE(IsHeld(answer));
  v1::CreateExperimentRequest high;
  high.mutable_specification()->set_name("high");
  high.mutable_specification()->add_learning_rates(0.1);
  high.mutable_specification()->add_seeds(0);
  high.mutable_specification()->set_priority(7);
  ASSERT_TRUE(coordinator_.TryCreate(high).ok());
  const Answer told = answer.get();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_TRUE(told->leases(0).preempted());
  EXPECT_THAT(told->leases(0).reason(), HasSubstr("priority 7, which goes before 0"));
}

TEST_F(HeldHeartbeatsTest, DirectiveIsRepeatedAtOnce) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Beat("w0", lease).get()->leases(0).cancelled_trials(),
                ElementsAre(lease.trials(0).trial()))
        << "an answer may have been lost";
  }
}

TEST_F(HeldHeartbeatsTest, OlderWorkerIsAnsweredAtOnce) {
  const Answer answer = Beat("w0", {}, absl::ZeroDuration()).get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->has_heartbeat_interval());
  EXPECT_EQ(coordinator_->held_heartbeats(), 0);
}

TEST_F(HeldHeartbeatsTest, SmallFleetIsAnsweredAtOnce) {
  coordinator_.Close();
  coordinator_.options().heartbeat_interval = absl::Seconds(1);
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  Register("w0");
  EXPECT_TRUE(Beat("w0").get().ok());
}

TEST_F(HeldHeartbeatsTest, HoldEndsByTheFleetsIntervalAndByTheWorkersWait) {
  auto patient = Beat("w0");
  auto hurried = Beat("w1", {}, absl::Milliseconds(2));
  ASSERT_TRUE(IsHeld(patient));
  coordinator_.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(hurried.get().ok());
  EXPECT_TRUE(IsHeld(patient));
  coordinator_.Advance(kHold - absl::Milliseconds(2));
  EXPECT_TRUE(patient.get().ok());
  EXPECT_EQ(coordinator_->held_heartbeats(), 0);
}

// The worker was heard of when it sent the heartbeat, and not since.
TEST_F(HeldHeartbeatsTest, HeldAnswerDoesNotRenewTheLease) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  auto answer = Beat("w0", lease);
  ASSERT_TRUE(IsHeld(answer));
  coordinator_.Advance(kHold);
  ASSERT_TRUE(answer.get().ok());
  coordinator_.Advance(absl::Seconds(30) - kHold);
  EXPECT_TRUE(coordinator_.Heartbeat("w0", {lease})->leases(0).lost());
}

TEST_F(HeldHeartbeatsTest, WorkerHasOneHeldHeartbeat) {
  auto first = Beat("w0");
  ASSERT_TRUE(IsHeld(first));
  auto second = Beat("w0");
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(IsHeld(second));
  EXPECT_EQ(coordinator_->held_heartbeats(), 1);
  v1::HeartbeatRequest last = Request("w0", {}, absl::Milliseconds(500));
  last.set_stopping(true);
  std::promise<absl::Status> stopped;
  PostHeartbeat(*coordinator_, last, "anonymous",
                [&](const Answer& answer) { stopped.set_value(answer.status()); });
  EXPECT_EQ(stopped.get_future().get(), absl::OkStatus()) << "it waits for nothing";
  EXPECT_TRUE(second.get().ok());
}

TEST_F(HeldHeartbeatsTest, UnknownWorkerIsRefusedAtOnce) {
  EXPECT_TRUE(absl::IsNotFound(Beat("nobody").get().status()));
}

TEST_F(HeldHeartbeatsTest, StopAnswersAll) {
  auto answer = Beat("w0");
  ASSERT_TRUE(IsHeld(answer));
  coordinator_->Stop();
  EXPECT_TRUE(absl::IsUnavailable(answer.get().status()));
}

TEST(LongestHoldTest, GrowsWithTheFleetWithinAQuarterOfALease) {
  const absl::Duration least = absl::Seconds(1), lease = absl::Seconds(30);
  EXPECT_EQ(Leases::LongestHold(least, lease, 10), absl::ZeroDuration());
  EXPECT_EQ(Leases::LongestHold(least, lease, 2'000), absl::ZeroDuration());
  EXPECT_EQ(Leases::LongestHold(least, lease, 10'000), absl::Seconds(5));
  EXPECT_EQ(Leases::LongestHold(least, lease, 1'000'000), absl::Milliseconds(7500));
  EXPECT_EQ(Leases::LongestHold(least, absl::Seconds(2), 10'000), absl::ZeroDuration())
      << "the interval is longer than that";
}

}  // namespace
}  // namespace lengthwise::server
