// Tests that no server leases a pack again that did not fit the device's memory.
#include "worker/connection/pack_capacities.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/connection/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = FakeWorkerService::State;

v1::HeartbeatRequest Untold(const PackCapacities& capacities) {
  v1::HeartbeatRequest request;
  capacities.AddUntold(request);
  return request;
}

TEST(PackCapacities, HalveAndNeverGrow) {
  PackCapacities capacities;
  EXPECT_FALSE(capacities.ForgetTold());
  capacities.DidNotFit("alone", 1);
  EXPECT_THAT(Untold(capacities).capacities(), IsEmpty());
  capacities.DidNotFit("small", 5);
  capacities.DidNotFit("small", 30);
  ASSERT_THAT(Untold(capacities).capacities(), SizeIs(1));
  EXPECT_EQ(Untold(capacities).capacities(0).shape(), "small");
  EXPECT_EQ(Untold(capacities).capacities(0).max_pack_size(), 2);
}

TEST(PackCapacities, FallToWhatIsMeasured) {
  PackCapacities capacities;
  capacities.Measured("small", 1'000'000'000'000);
  EXPECT_THAT(Untold(capacities).capacities(), IsEmpty()) << "memory limits no pack";
  const auto measured = [&](int64_t trials) {
    capacities.Measured("wide", trials);
    return Untold(capacities).capacities(0).max_pack_size();
  };
  EXPECT_EQ(measured(40), 40) << "the first step was short";
  EXPECT_EQ(measured(24), 24);
  EXPECT_EQ(measured(26), 24);
  capacities.DidNotFit("wide", 24);
  EXPECT_EQ(measured(26), 12) << "memory runs out earlier than measured";
  EXPECT_EQ(measured(0), 1);
}

TEST(PackCapacities, AreReportedOncePerChangeAndServer) {
  PackCapacities capacities;
  capacities.DidNotFit("small", 8);
  const v1::HeartbeatRequest answered = Untold(capacities);
  EXPECT_EQ(Untold(capacities).capacities_size(), 1) << "no server has answered yet";
  // Learned while the request was in flight.
  capacities.DidNotFit("small", 4);
  capacities.Told(answered);
  ASSERT_THAT(Untold(capacities).capacities(), SizeIs(1));
  EXPECT_EQ(Untold(capacities).capacities(0).max_pack_size(), 2);
  capacities.Told(Untold(capacities));
  EXPECT_THAT(Untold(capacities).capacities(), IsEmpty());
  EXPECT_TRUE(capacities.ForgetTold());
  EXPECT_THAT(Untold(capacities).capacities(), SizeIs(1));
}

class PackCapacitiesTest : public ConnectionTest {};

TEST_F(PackCapacitiesTest, RestartedServerLearnsBeforeItsFirstLease) {
  v1::Lease lease = LeaseOf({"a", "b", "c", "d"});
  lease.set_shape("wide");
  OfferLease(lease);
  options_.acquire_wait = absl::Milliseconds(20);
  StartWorker([](const v1::Lease& lease, PackSession& session) {
    v1::Event event;
    event.mutable_outcome()->set_kind(v1::Outcome::OUT_OF_MEMORY);
    for (int trial = 0; trial < lease.trials_size(); ++trial) session.Emit(trial, event);
    return absl::OkStatus();
  });
  const auto told = [](const State& state) {
    int64_t times = 0;
    for (const v1::HeartbeatRequest& heartbeat : state.heartbeats) {
      for (const v1::PackCapacity& capacity : heartbeat.capacities()) {
        EXPECT_EQ(capacity.shape(), "wide");
        EXPECT_EQ(capacity.max_pack_size(), 2);
        ++times;
      }
    }
    return times;
  };
  ASSERT_TRUE(server_.WaitUntil([&](const State& state) { return told(state) > 0; }));
  size_t heartbeats = 0;
  server_.With([&](State& state) { heartbeats = state.heartbeats.size(); });
  ASSERT_TRUE(server_.WaitUntil(
      [&](const State& state) { return state.heartbeats.size() > heartbeats + 2; }));
  server_.With([&](State& state) {
    EXPECT_EQ(told(state), 1);
    // Equivalent to another server.
    state.heartbeats.clear();
    state.is_registered = false;
  });
  ASSERT_TRUE(server_.WaitUntil([](const State& state) { return !state.heartbeats.empty(); }));
  server_.With([](State& state) {
    EXPECT_THAT(state.registrations, SizeIs(Ge(2)));
    EXPECT_THAT(state.heartbeats[0].capacities(), SizeIs(1)) << "the first after the registration";
  });
}

TEST_F(PackCapacitiesTest, ServerLearnsWhatTheRunnerMeasures) {
  v1::Lease lease = LeaseOf({"a", "b"});
  lease.set_shape("wide");
  OfferLease(lease);
  options_.acquire_wait = absl::Milliseconds(20);
  StartWorker([](const v1::Lease&, PackSession& session) {
    session.ReportCapacity(7);
    return absl::OkStatus();
  });
  ASSERT_TRUE(server_.WaitUntil([](const State& state) {
    for (const v1::HeartbeatRequest& heartbeat : state.heartbeats) {
      for (const v1::PackCapacity& capacity : heartbeat.capacities()) {
        return capacity.shape() == "wide" && capacity.max_pack_size() == 7;
      }
    }
    return false;
  }));
}

}  // namespace
}  // namespace lengthwise::worker
