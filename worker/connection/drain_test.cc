// A worker that is asked to stop.
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "worker/connection/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::SizeIs;
using Directive = PackSession::Directive;
using State = FakeServer::State;

class DrainTest : public ConnectionTest {};

TEST_F(DrainTest, DrainStoresCheckpointsAndGivesTheLeaseBack) {
  OfferLease(LeaseOf({"a"}));
  absl::Notification started;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.Emit(0, Point(1));
    started.Notify();
    EXPECT_EQ(AwaitDirective(session, 0), Directive::kDrain);
    session.EmitCheckpoint(0, 1, "bytes");
    return absl::OkStatus();
  });
  started.WaitForNotification();
  EXPECT_TRUE(Stop().ok());
  server_.With([](State& state) {
    EXPECT_EQ(EventsOf(state, "a"), 2);
    EXPECT_TRUE(state.artifacts.contains(platform::Sha256Hex("bytes")));
    ASSERT_THAT(state.releases, SizeIs(1));
    EXPECT_EQ(state.releases[0].lease_id(), "lease-1");
    EXPECT_EQ(state.releases[0].fencing_token(), 11);
    EXPECT_EQ(state.releases[0].reason(), "the worker was asked to stop");
    EXPECT_TRUE(state.heartbeats.back().stopping()) << "the server forgets a worker that stops";
    EXPECT_THAT(state.heartbeats.back().leases(), SizeIs(0));
  });
}

TEST_F(DrainTest, APreemptedLeaseIsGivenBackWithItsReasonAndTheWorkerTakesTheNext) {
  OfferLease(LeaseOf({"low"}, "lease-1"));
  OfferLease(LeaseOf({"high"}, "lease-2"));
  server_.With([](State& state) { state.preempted_leases["lease-1"] = "priority 7 goes first"; });
  StartWorker([&](const v1::Lease& lease, PackSession& session) {
    if (lease.lease_id() == "lease-1") {
      EXPECT_EQ(AwaitDirective(session, 0), Directive::kDrain);
      session.EmitCheckpoint(0, 1, "bytes");
    } else {
      EXPECT_EQ(session.GetDirective(0), Directive::kContinue);
      session.Emit(0, Completed());
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "high") == 1; }));
  server_.With([](State& state) {
    EXPECT_TRUE(state.artifacts.contains(platform::Sha256Hex("bytes")));
    ASSERT_THAT(state.releases, SizeIs(1));
    EXPECT_EQ(state.releases[0].lease_id(), "lease-1");
    EXPECT_EQ(state.releases[0].reason(), "priority 7 goes first");
    EXPECT_EQ(EventsOf(state, "low"), 1);
  });
  EXPECT_TRUE(Stop().ok());
}

TEST_F(DrainTest, DrainEndsAlthoughTheServerIsGone) {
  options_.session.drain_timeout = absl::Milliseconds(100);
  options_.rpc_timeout = absl::Milliseconds(100);
  OfferLease(LeaseOf({"a"}));
  absl::Notification started, stopped;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    started.Notify();
    stopped.WaitForNotification();
    session.EmitCheckpoint(0, 1, "bytes");
    return absl::OkStatus();
  });
  started.WaitForNotification();
  server_.Stop();
  connection_->Drain();
  stopped.Notify();
  EXPECT_TRUE(Join().ok());
}

TEST_F(DrainTest, DrainWhileWaitingForALeaseEndsAtOnce) {
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return state.acquires == 1; }));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(DrainTest, DrainWhileTheServerWasNeverThereEndsAtOnce) {
  server_.Stop();
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  EXPECT_TRUE(Stop().ok());
}

}  // namespace
}  // namespace lengthwise::worker
