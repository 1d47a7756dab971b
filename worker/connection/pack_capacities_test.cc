// Tests that no server leases a pack again that did not fit the device's memory.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/connection/lease_session.h"
#include "worker/connection/testing/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = FakeWorkerService::State;

v1::SynchronizeRequest Of(const PackCapacities& capacities) {
  v1::SynchronizeRequest request;
  capacities.AddTo(request);
  return request;
}

TEST(PackCapacities, HalveAndNeverGrow) {
  PackCapacities capacities;
  capacities.DidNotFit("alone", 1);
  EXPECT_THAT(Of(capacities).capacities(), IsEmpty());
  capacities.DidNotFit("small", 5);
  capacities.DidNotFit("small", 30);
  ASSERT_THAT(Of(capacities).capacities(), SizeIs(1));
  EXPECT_EQ(Of(capacities).capacities(0).shape(), "small");
  EXPECT_EQ(Of(capacities).capacities(0).max_pack_size(), 2);
}

TEST(PackCapacities, FallToWhatIsMeasured) {
  PackCapacities capacities;
  capacities.Measured("small", 1'000'000'000'000);
  EXPECT_THAT(Of(capacities).capacities(), IsEmpty()) << "memory limits no pack";
  const auto measured = [&](int64_t trials) {
    capacities.Measured("wide", trials);
    return Of(capacities).capacities(0).max_pack_size();
  };
  EXPECT_EQ(measured(40), 40) << "the first step was short";
  EXPECT_EQ(measured(24), 24);
  EXPECT_EQ(measured(26), 24);
  capacities.DidNotFit("wide", 24);
  EXPECT_EQ(measured(26), 12) << "memory runs out earlier than measured";
  EXPECT_EQ(measured(0), 1);
}

class PackCapacitiesTest : public ConnectionTest {};

TEST_F(PackCapacitiesTest, RestartedServerLearnsBeforeItsFirstLease) {
  v1::Lease lease = LeaseOf({"a", "b", "c", "d"});
  lease.set_shape("wide");
  OfferLease(lease);
  StartWorker([](const v1::Lease& lease, PackSession& session) {
    v1::Event event;
    event.mutable_outcome()->set_kind(v1::Outcome::OUT_OF_MEMORY);
    for (int trial = 0; trial < lease.trials_size(); ++trial) session.Emit(trial, event);
    return absl::OkStatus();
  });
  const auto told = [](const State& state) {
    int64_t times = 0;
    for (const v1::SynchronizeRequest& call : state.calls) {
      for (const v1::PackCapacity& capacity : call.capacities()) {
        EXPECT_EQ(capacity.shape(), "wide");
        EXPECT_EQ(capacity.max_pack_size(), 2);
        ++times;
      }
    }
    return times;
  };
  ASSERT_TRUE(server_.WaitUntil([&](const State& state) { return told(state) > 0; }));
  server_.With([&](State& state) {
    // Equivalent to another server.
    state.calls.clear();
    state.is_registered = false;
  });
  ASSERT_TRUE(server_.WaitUntil([](const State& state) { return !state.calls.empty(); }));
  server_.With([](State& state) {
    EXPECT_THAT(state.calls[0].capacities(), SizeIs(1)) << "already the first call says it";
  });
}

TEST_F(PackCapacitiesTest, ServerLearnsWhatTheRunnerMeasures) {
  v1::Lease lease = LeaseOf({"a", "b"});
  lease.set_shape("wide");
  OfferLease(lease);
  StartWorker([](const v1::Lease&, PackSession& session) {
    session.ReportCapacity(7);
    return absl::OkStatus();
  });
  ASSERT_TRUE(server_.WaitUntil([](const State& state) {
    for (const v1::SynchronizeRequest& call : state.calls) {
      for (const v1::PackCapacity& capacity : call.capacities()) {
        return capacity.shape() == "wide" && capacity.max_pack_size() == 7;
      }
    }
    return false;
  }));
}

}  // namespace
}  // namespace lengthwise::worker
