// Calls whose answers are held, on the real command loop and store. The clock stands still: an
// answer that comes was not waited for.
#include "server/coordination/waiting_calls.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// With the interval of a millisecond, a fleet is large from three workers on.
constexpr int kWorkers = 20;
constexpr absl::Duration kHold = absl::Milliseconds(10);

using Answer = WaitingCalls::Answer;

class WaitingCallsTest : public testing::Test {
 protected:
  WaitingCallsTest() {
    coordinator_.options().heartbeat_interval = absl::Milliseconds(1);
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    for (int i = 0; i < kWorkers; ++i) Register(absl::StrCat("w", i));
  }

  void Register(const std::string& worker) {
    ASSERT_EQ(coordinator_.Register(worker), absl::OkStatus());
  }

  v1::SynchronizeRequest Request(const std::string& worker, const v1::Lease& lease,
                                 absl::Duration wait) {
    v1::SynchronizeRequest request = coordinator_.CallOf(worker);
    if (!lease.lease_id().empty()) request = coordinator_.CallOf(worker, {lease});
    request.mutable_wait()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(wait)));
    return request;
  }

  // Queues a call that wants no lease. Without `lease`, of a worker without one.
  std::future<Answer> Beat(const std::string& worker, const v1::Lease& lease = {},
                           absl::Duration wait = absl::Milliseconds(500)) {
    return coordinator_.Later(Request(worker, lease, wait));
  }
  // Queues a call that wants a lease.
  std::future<Answer> Ask(const std::string& worker) {
    v1::SynchronizeRequest request = Request(worker, {}, absl::Milliseconds(500));
    request.set_wants_lease(true);
    return coordinator_.Later(request);
  }

  // Keeps the loop busy until `go`: one group has all that is queued until then.
  void KeepBusy(std::shared_future<void> go) {
    const auto busy = std::make_shared<std::promise<void>>();
    PostCall(*coordinator_, Request("w1", {}, absl::ZeroDuration()), "anonymous",
             [busy, go = std::move(go)](const auto&) {
               busy->set_value();
               go.wait();
             });
    busy->get_future().wait();
  }

  // True if the answer is held, after all that was queued before.
  bool IsHeld(std::future<Answer>& answer) {
    coordinator_->loop().Flush();
    return answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }

  TestCoordinator coordinator_;
};

TEST_F(WaitingCallsTest, CancellationEndsTheHold) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  auto answer = Beat("w0", lease);
  auto other = Beat("w1");
  ASSERT_TRUE(IsHeld(answer));
  EXPECT_EQ(coordinator_->waiting_calls(), 2);
  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());
  const Answer told = answer.get();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(told->leases(0).cancelled_trials(), ElementsAre(lease.trials(0).trial()));
  EXPECT_FALSE(told->leases(0).lost());
  EXPECT_TRUE(IsHeld(other)) << "it has nothing to do with the trial";
}

// In one group of commands, in both orders: the directive is neither lost nor late.
TEST_F(WaitingCallsTest, CancellationInTheSameGroupIsTold) {
  for (const bool cancelled_first : {false, true}) {
    coordinator_.Create("sort", 1, 1);
    const v1::Lease lease = coordinator_.Acquire("w0");
    std::promise<void> both_queued;
    KeepBusy(both_queued.get_future().share());
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

// The call was made before the lease arrived, and comes after the cancellation was told in vain.
// Held, it would keep the worker from calling again.
TEST_F(WaitingCallsTest, UntoldLeaseWithADirectiveIsNotHeld) {
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

TEST_F(WaitingCallsTest, WorkersGetPacksInTheOrderOfTheirCalls) {
  auto first = Ask("w1");
  auto second = Ask("w0");
  auto running = Beat("w2");
  ASSERT_TRUE(IsHeld(second));
  coordinator_.Create("sort", 1, 1);
  EXPECT_TRUE(first.get()->has_lease());
  EXPECT_TRUE(IsHeld(second));
  EXPECT_TRUE(IsHeld(running)) << "it wants none";
  coordinator_.Create("sort", 1, 1);
  EXPECT_TRUE(second.get()->has_lease());
}

// The answer that granted the lease is lost.
TEST_F(WaitingCallsTest, LeaseIsOfferedAgainUntilItIsListed) {
  coordinator_.Create("sort", 1, 2);
  const v1::Lease lost = Ask("w0").get()->lease();
  ASSERT_EQ(lost.trials_size(), 1);
  const v1::Lease again = Ask("w0").get()->lease();
  EXPECT_EQ(again.fencing_token(), lost.fencing_token());
  EXPECT_EQ(again.lease_id(), lost.lease_id());
  EXPECT_EQ(again.trials(0).trial(), lost.trials(0).trial());
  EXPECT_EQ(again.trials(0).attempt(), 1);
  // Another worker gets the other trial.
  EXPECT_NE(Ask("w1").get()->lease().trials(0).trial(), lost.trials(0).trial());
  EXPECT_FALSE(coordinator_.Heartbeat("w0", {again})->leases(0).lost());
  auto next = Ask("w0");
  EXPECT_TRUE(IsHeld(next)) << "it has listed the lease";
}

TEST_F(WaitingCallsTest, UnlistedLeaseEndsOnceItIsNotWanted) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lost = Ask("w0").get()->lease();
  ASSERT_EQ(lost.trials_size(), 1);
  ASSERT_EQ(coordinator_.Stop("w0"), absl::OkStatus());
  const v1::Lease next = Ask("w1").get()->lease();
  ASSERT_EQ(next.trials_size(), 1) << "not only after a lease duration";
  EXPECT_GT(next.fencing_token(), lost.fencing_token());
  EXPECT_EQ(next.trials(0).attempt(), 2);
}

TEST_F(WaitingCallsTest, DelayedCallDisownsNoLease) {
  coordinator_.Create("sort", 1, 2);
  const v1::SynchronizeRequest before = Request("w0", {}, absl::ZeroDuration());
  v1::SynchronizeRequest stopping = Request("w0", {}, absl::ZeroDuration());
  stopping.set_stopping(true);
  v1::SynchronizeRequest asking = Request("w0", {}, absl::ZeroDuration());
  asking.set_wants_lease(true);
  const v1::Lease lease = Ask("w0").get()->lease();
  ASSERT_EQ(lease.trials_size(), 1);
  for (const v1::SynchronizeRequest& delayed : {before, stopping, asking}) {
    EXPECT_TRUE(absl::IsAborted(coordinator_.Later(delayed).get().status()));
  }
  EXPECT_EQ(Ask("w0").get()->lease().fencing_token(), lease.fencing_token());
  EXPECT_FALSE(coordinator_.Heartbeat("w0", {lease})->leases(0).lost());
  EXPECT_EQ(coordinator_->GetStatistics().leases, 1);
}

// Its attempt may have sent events, whose numbers another process does not know.
TEST_F(WaitingCallsTest, AnotherSessionIsNotOfferedTheLease) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = Ask("w0").get()->lease();
  Register("w0");
  auto answer = Ask("w0");
  EXPECT_TRUE(IsHeld(answer));
  coordinator_.Advance(absl::Seconds(31));
  EXPECT_FALSE(answer.get()->has_lease());
  EXPECT_EQ(Ask("w0").get()->lease().trials(0).attempt(), 2);
}

TEST_F(WaitingCallsTest, LeasesAreGivenBackAndTakenInOneCall) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  v1::SynchronizeRequest request = coordinator_.CallOf("w0");
  request.set_wants_lease(true);
  request.add_released()->set_lease_id(lease.lease_id());
  request.mutable_released(0)->set_fencing_token(lease.fencing_token());
  request.mutable_released(0)->set_reason("enough");
  const v1::Lease next = coordinator_.Later(request).get()->lease();
  EXPECT_EQ(next.trials(0).trial(), lease.trials(0).trial());
  EXPECT_GT(next.fencing_token(), lease.fencing_token());
}

TEST_F(WaitingCallsTest, LostWorkersDoNotLengthenTheHold) {
  coordinator_.Advance(absl::Seconds(31));
  Register("w0");
  coordinator_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Beat("w0").get().ok()) << "19 of 20 workers are lost: the fleet is small";
}

TEST_F(WaitingCallsTest, PreemptionEndsTheHold) {
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

TEST_F(WaitingCallsTest, DirectiveIsRepeatedAtOnce) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Beat("w0", lease).get()->leases(0).cancelled_trials(),
                ElementsAre(lease.trials(0).trial()))
        << "an answer may have been lost";
  }
}

TEST_F(WaitingCallsTest, WorkerThatDoesNotWaitIsAnsweredAtOnce) {
  const Answer answer = Beat("w0", {}, absl::ZeroDuration()).get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->has_heartbeat_interval());
  EXPECT_EQ(coordinator_->waiting_calls(), 0);
}

TEST_F(WaitingCallsTest, SmallFleetIsAnsweredAtOnce) {
  coordinator_.Close();
  coordinator_.options().heartbeat_interval = absl::Seconds(1);
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  Register("w0");
  EXPECT_TRUE(Beat("w0").get().ok());
}

TEST_F(WaitingCallsTest, HoldEndsByTheFleetsIntervalAndByTheWorkersWait) {
  auto patient = Beat("w0");
  auto hurried = Beat("w1", {}, absl::Milliseconds(2));
  ASSERT_TRUE(IsHeld(patient));
  coordinator_.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(hurried.get().ok());
  EXPECT_TRUE(IsHeld(patient));
  coordinator_.Advance(kHold - absl::Milliseconds(2));
  EXPECT_TRUE(patient.get().ok());
  EXPECT_EQ(coordinator_->waiting_calls(), 0);
}

// The worker was heard of when it sent the heartbeat, and not since.
TEST_F(WaitingCallsTest, HeldAnswerDoesNotRenewTheLease) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w0");
  auto answer = Beat("w0", lease);
  ASSERT_TRUE(IsHeld(answer));
  coordinator_.Advance(kHold);
  ASSERT_TRUE(answer.get().ok());
  coordinator_.Advance(absl::Seconds(30) - kHold);
  EXPECT_TRUE(coordinator_.Heartbeat("w0", {lease})->leases(0).lost());
}

TEST_F(WaitingCallsTest, LaterCallEndsTheHold) {
  auto first = Beat("w0");
  ASSERT_TRUE(IsHeld(first));
  auto second = Beat("w0");
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(IsHeld(second));
  EXPECT_EQ(coordinator_->waiting_calls(), 1);
  v1::SynchronizeRequest last = Request("w0", {}, absl::Milliseconds(500));
  last.set_stopping(true);
  EXPECT_EQ(coordinator_.Later(last).get().status(), absl::OkStatus()) << "it waits for nothing";
  EXPECT_TRUE(second.get().ok());
}

// Otherwise a worker that calls without end would fill the memory with answers.
TEST_F(WaitingCallsTest, CallsOfAWorkerInOneGroupGetOneLease) {
  coordinator_.Create("sort", 1, 1);
  std::promise<void> queued;
  KeepBusy(queued.get_future().share());
  auto first = Ask("w0");
  auto second = Ask("w0");
  queued.set_value();
  EXPECT_FALSE(first.get()->has_lease());
  EXPECT_TRUE(second.get()->has_lease());
}

TEST_F(WaitingCallsTest, LeasesOfAGroupHaveALimitedSize) {
  v1::CreateExperimentRequest large;
  large.mutable_specification()->set_name("large");
  large.mutable_specification()->add_learning_rates(0.1);
  for (int i = 0; i < kWorkers; ++i) large.mutable_specification()->add_seeds(i);
  // Two megabytes in each trial.
  for (int i = 1; i <= 500'000; ++i) {
    large.mutable_specification()->mutable_evaluation()->add_lengths(i);
  }
  ASSERT_TRUE(coordinator_.TryCreate(large).ok());
  std::promise<void> queued, told;
  KeepBusy(queued.get_future().share());
  constexpr int kAsking = kWorkers - 1;
  std::vector<int64_t> granted;  // leases at each answer
  for (int i = 0; i < kAsking; ++i) {
    v1::SynchronizeRequest request = Request(absl::StrCat("w", i), {}, absl::Milliseconds(500));
    request.set_wants_lease(true);
    PostCall(*coordinator_, request, "anonymous", [&](const Answer& answer) {
      EXPECT_TRUE(answer.ok() && answer->has_lease());
      granted.push_back(coordinator_->GetStatistics().leases);
      if (std::ssize(granted) == kAsking) told.set_value();
    });
  }
  int64_t before_heartbeat = kAsking;
  PostCall(*coordinator_, Request(absl::StrCat("w", kAsking), {}, absl::ZeroDuration()),
           "anonymous", [&](const Answer&) { before_heartbeat = std::ssize(granted); });
  queued.set_value();
  told.get_future().wait();
  EXPECT_LE(granted.front(), 5) << "the first group makes no more";
  EXPECT_EQ(granted.back(), kAsking);
  EXPECT_LE(before_heartbeat, 5) << "who wants no lease does not wait for the others";
}

// Otherwise a token could register workers that take nothing, and no autoscaler would start any.
TEST_F(WaitingCallsTest, OnlyWorkersThatWaitForALeaseAreIdle) {
  const auto idle = [&] {
    coordinator_->loop().Flush();
    return coordinator_->reads().GetWantedWorkers({})->idle_workers();
  };
  EXPECT_EQ(idle(), 0) << "they are registered, and ask for nothing";
  const auto beat = Beat("w0");
  EXPECT_EQ(idle(), 0) << "it waits, but wants none";
  const auto first = Ask("w1");
  v1::SynchronizeRequest request = Request("w2", {}, absl::Milliseconds(500));
  request.set_wants_lease(true);
  std::atomic<bool> gone = false;
  const auto second = coordinator_.Later(request, [&] { return gone.load(); });
  EXPECT_EQ(idle(), 2);
  gone = true;
  EXPECT_EQ(idle(), 1) << "its caller has left";
  coordinator_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(idle(), 0) << "the answers are sent";
}

TEST_F(WaitingCallsTest, StopAnswersAll) {
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
