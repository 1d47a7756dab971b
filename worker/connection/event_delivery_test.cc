// Tests that events arrive once and in order, whatever happens to streams and servers.
#include <atomic>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/connection/testing/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::IsEmpty;
using Directive = PackSession::Directive;
using State = FakeWorkerService::State;

class EventDeliveryTest : public ConnectionTest {};

TEST_F(EventDeliveryTest, EventsArriveOnceInOrderDespiteBrokenStreams) {
  server_.With([](State& state) {
    state.stream_faults = {{.stored = 0, .acknowledged = 0}, {.stored = 3, .acknowledged = 1},
                           {.stored = 1, .acknowledged = 0}, {.stored = 5, .acknowledged = 0},
                           {.stored = 2, .acknowledged = 2}, {.stored = 4, .acknowledged = 3}};
  });
  options_.session.outbox.max_batch_events = 3;
  OfferLease(LeaseOf({"a", "b"}));
  StartWorker([](const v1::Lease&, PackSession& session) {
    for (int64_t step = 1; step <= 100; ++step) {
      session.Emit(0, Point(step));
      session.Emit(1, Point(step));
    }
    session.Emit(0, Completed());
    session.Emit(1, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) {
    return EventsOf(state, "a") == 101 && EventsOf(state, "b") == 101;
  }));
  EXPECT_TRUE(Stop().ok());
  ExpectPointsAndOutcome("a", 100);
  ExpectPointsAndOutcome("b", 100);
  server_.With([](State& state) {
    EXPECT_THAT(state.stream_faults, IsEmpty());
    EXPECT_GT(state.duplicates, 0);  // stored but unacknowledged events were sent again
    EXPECT_EQ(state.refusals, 0);
  });
}

TEST_F(EventDeliveryTest, LogNamesWhyAStreamEnded) {
  server_.With([](State& state) { state.stream_faults = {{.stored = 0, .acknowledged = 0}}; });
  testing::internal::CaptureStderr();
  OfferLease(LeaseOf({"a"}));
  StartWorker([](const v1::Lease&, PackSession& session) {
    for (int64_t step = 1; step <= 100; ++step) session.Emit(0, Point(step));
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 101; }));
  EXPECT_TRUE(Stop().ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("event stream unreachable (cut off); retrying"));
  EXPECT_THAT(log, testing::Not(testing::HasSubstr("CANCELLED")));
}

TEST_F(EventDeliveryTest, PackContinuesDuringAnOutage) {
  absl::Notification halfway, stopped, emitted;
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    for (int64_t step = 1; step <= 50; ++step) session.Emit(0, Point(step));
    halfway.Notify();
    stopped.WaitForNotification();
    for (int64_t step = 51; step <= 100; ++step) session.Emit(0, Point(step));
    EXPECT_EQ(session.GetDirective(0), Directive::kContinue);
    emitted.Notify();
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  halfway.WaitForNotification();
  server_.Stop();
  server_.With([](State& state) { state.is_registered = false; });  // the server forgets the worker
  stopped.Notify();
  EXPECT_TRUE(emitted.WaitForNotificationWithTimeout(absl::Seconds(30)))
      << "the pack waits for the server";
  server_.Start();
  EXPECT_TRUE(server_.WaitUntil([](const State& state) {
    return EventsOf(state, "a") == 101 && state.registrations.size() == 2;
  }));
  EXPECT_TRUE(Stop().ok());
  ExpectPointsAndOutcome("a", 100);
}

TEST_F(EventDeliveryTest, EmitBlocksWhileSpoolIsFull) {
  server_.With([](State& state) { state.holds_acknowledgements = true; });
  options_.session.outbox.max_bytes = 20'000;
  options_.session.outbox.max_batch_bytes = 1'000;
  OfferLease(LeaseOf({"a"}));
  std::atomic<int> emitted = 0;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    for (int64_t step = 1; step <= 100; ++step) {
      v1::Event event = Point(step);
      for (int i = 0; i < 250; ++i)
        event.mutable_training_points()->add_losses(0.5f);  // 1,000 bytes
      session.Emit(0, std::move(event));
      emitted = static_cast<int>(step);
    }
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  // Heartbeats show when the spool is full: 20,000 bytes hold fewer than 20 such events.
  EXPECT_TRUE(server_.WaitUntil([](const State& state) {
    return !state.calls.empty() && state.calls.back().measurements().unsent_bytes() > 18'000;
  }));
  EXPECT_LT(emitted, 20);
  server_.With([](State& state) { state.holds_acknowledgements = false; });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 101; }));
  EXPECT_TRUE(Stop().ok());
  ExpectPointsAndOutcome("a", 100);
  server_.With([](State& state) {
    for (const v1::SynchronizeRequest& heartbeat : state.calls) {
      EXPECT_LE(heartbeat.measurements().unsent_bytes(), 20'000);
    }
  });
}

TEST_F(EventDeliveryTest, GapInTheServersSequenceIsFilled) {
  options_.session.outbox.max_batch_events = 2;
  server_.With([](State& state) { state.vanishing_batches = 1; });
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    for (int64_t step = 1; step <= 10; ++step) session.Emit(0, Point(step));
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 11; }));
  EXPECT_TRUE(Stop().ok());
  ExpectPointsAndOutcome("a", 10);
  server_.With([](State& state) {
    EXPECT_GT(state.refusals, 0);
    EXPECT_EQ(state.streams, 2);
  });
}

TEST_F(EventDeliveryTest, EveryReportOfAGapEndsItsStream) {
  server_.With([](State& state) { state.reported_gaps = 5; });
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 1; }));
  EXPECT_TRUE(Stop().ok());
  // Each new stream comes after a pause.
  server_.With([](State& state) { EXPECT_EQ(state.streams, 6); });
}

TEST_F(EventDeliveryTest, LostBatchIsResentOnANewStream) {
  options_.session.sender.acknowledgement_timeout = absl::Milliseconds(50);
  server_.With([](State& state) { state.vanishing_batches = 1; });
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 1; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([](State& state) { EXPECT_GE(state.streams, 2); });
}

}  // namespace
}  // namespace lengthwise::worker
