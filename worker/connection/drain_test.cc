// Tests draining: how a worker stops.
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "worker/connection/backoff.h"
#include "worker/connection/data_cache.h"
#include "worker/connection/testing/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Directive = PackSession::Directive;
using State = FakeWorkerService::State;

class DrainTest : public ConnectionTest {};

TEST_F(DrainTest, DrainStoresCheckpointsAndReleasesTheLease) {
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
    EXPECT_TRUE(state.calls.back().stopping()) << "the server forgets a worker that stops";
    EXPECT_THAT(state.calls.back().leases(), SizeIs(0));
  });
}

TEST_F(DrainTest, PreemptedLeaseIsReleasedAndNextIsTaken) {
  OfferLease(LeaseOf({"low"}, "lease-1"));
  OfferLease(LeaseOf({"high"}, "lease-2", 12));
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

TEST_F(DrainTest, DrainDoesNotWaitForAHeldHeartbeat) {
  server_.With([](State& state) {
    state.lease_duration = absl::Minutes(4);
    state.holds_answers = true;
  });
  OfferLease(LeaseOf({"a"}));
  absl::Notification started;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    started.Notify();
    EXPECT_EQ(AwaitDirective(session, 0), Directive::kDrain);
    return absl::OkStatus();
  });
  started.WaitForNotification();
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return state.held_answers == 1; }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Stop().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "not 30 s";
  server_.With([](State& state) {
    EXPECT_THAT(state.releases, SizeIs(1));
    EXPECT_TRUE(state.calls.back().stopping());
  });
}

TEST_F(DrainTest, DrainEndsDuringAnOutage) {
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
  loop_->Drain();
  stopped.Notify();
  EXPECT_TRUE(Join().ok());
}

// Accepts at most 512 KiB every 120 ms, so the whole upload takes longer than drain_stall.
TEST_F(DrainTest, SlowUploadIsStoredBeyondTheStallLimit) {
  options_.session.drain_stall = absl::Seconds(6);
  server_.With([](State& state) { state.upload_pause = absl::Milliseconds(120); });
  OfferLease(LeaseOf({"a"}));
  const std::string bytes(size_t{32} << 20, 'x');
  absl::Notification started;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    started.Notify();
    EXPECT_EQ(AwaitDirective(session, 0), Directive::kDrain);
    session.EmitCheckpoint(0, 1, bytes);
    return absl::OkStatus();
  });
  started.WaitForNotification();
  EXPECT_TRUE(Stop().ok());
  server_.With([&](State& state) {
    EXPECT_TRUE(state.artifacts.contains(platform::Sha256Hex(bytes)));
    EXPECT_EQ(EventsOf(state, "a"), 1);
    EXPECT_LT(state.upload_parts, 100) << "parts of 256 KiB do not grow";
  });
}

TEST_F(DrainTest, StalledUploadIsGivenUp) {
  EXPECT_EQ(options_.session.drain_stall, absl::Seconds(10)) << "the promised default";
  options_.session.drain_stall = absl::Milliseconds(100);
  options_.session.drain_timeout = absl::Minutes(10);
  server_.With([](State& state) { state.holds_uploads = true; });
  OfferLease(LeaseOf({"a"}));
  // More than the connection buffers.
  const std::string bytes(size_t{32} << 20, 'x');
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.EmitCheckpoint(0, 1, bytes);
    EXPECT_EQ(AwaitDirective(session, 0), Directive::kDrain);
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return state.uploads == 1; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([&](State& state) {
    EXPECT_FALSE(state.artifacts.contains(platform::Sha256Hex(bytes)));
    EXPECT_EQ(EventsOf(state, "a"), 0);
    ASSERT_THAT(state.releases, SizeIs(1));
    EXPECT_EQ(state.releases[0].lease_id(), "lease-1");
  });
  // If the worker still waits, its upload goes on, so that the test ends.
  server_.With([](State& state) { state.holds_uploads = false; });
}

TEST_F(DrainTest, DrainTimeoutEndsASlowUpload) {
  options_.session.drain_timeout = absl::Milliseconds(200);
  server_.With([](State& state) { state.upload_pause = absl::Milliseconds(50); });
  OfferLease(LeaseOf({"a"}));
  const std::string bytes(size_t{32} << 20, 'x');
  absl::Notification started;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    started.Notify();
    EXPECT_EQ(AwaitDirective(session, 0), Directive::kDrain);
    session.EmitCheckpoint(0, 1, bytes);
    return absl::OkStatus();
  });
  started.WaitForNotification();
  EXPECT_TRUE(Stop().ok());
  server_.With([&](State& state) {
    EXPECT_FALSE(state.artifacts.contains(platform::Sha256Hex(bytes)));
    EXPECT_THAT(state.releases, SizeIs(1));
  });
}

// A fetch before the first step must not use up a drain's time.
TEST_F(DrainTest, DrainCancelsDownloads) {
  const std::string bytes = "bytes";
  const std::string directory = testing::TempDir() + "/drain_cancels_downloads";
  std::filesystem::remove_all(directory);
  DataCache data({.directory = directory});
  options_.session.data = &data;
  v1::Lease lease = LeaseOf({"a"});
  lease.mutable_trials(0)->mutable_checkpoint()->set_sha256(platform::Sha256Hex(bytes));
  lease.mutable_trials(0)->mutable_checkpoint()->set_size_bytes(5);
  for (const bool examples : {false, true}) {
    lease.set_fencing_token(examples ? 12 : 11);
    server_.With([&](State& state) {
      state.artifacts[platform::Sha256Hex(bytes)] = bytes;
      state.holds_downloads = true;
      state.downloads = 0;
      state.leases = {lease};
    });
    absl::Status fetched;
    StartWorker([&](const v1::Lease&, PackSession& session) {
      fetched = examples ? session.FetchData(0, platform::Sha256Hex(bytes), 5).status()
                         : session.FetchCheckpoint(0).status();
      return absl::OkStatus();
    });
    EXPECT_TRUE(server_.WaitUntil([](const State& state) { return state.downloads == 1; }));
    EXPECT_TRUE(Stop().ok());
    server_.With([](State& state) { state.holds_downloads = false; });
    ASSERT_FALSE(running_.valid()) << "it still waits for the download";
    EXPECT_TRUE(absl::IsCancelled(fetched)) << fetched;
    server_.With([&](State& state) { EXPECT_THAT(state.releases, SizeIs(examples ? 2 : 1)); });
  }
}

TEST_F(DrainTest, LifetimeDrainsTheLeaseAndEndsTheWorker) {
  options_.drain_at = After(absl::Seconds(3));
  options_.shortest_run = absl::Milliseconds(1);
  OfferLease(LeaseOf({"a"}, "lease-1"));
  OfferLease(LeaseOf({"b"}, "lease-2", 12));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    EXPECT_EQ(AwaitDirective(session, 0), Directive::kDrain);
    session.EmitCheckpoint(0, 1, "bytes");
    return absl::OkStatus();
  });
  EXPECT_TRUE(Join().ok());
  server_.With([](State& state) {
    EXPECT_EQ(EventsOf(state, "a"), 1);
    EXPECT_EQ(EventsOf(state, "b"), 0);
    EXPECT_THAT(state.releases, SizeIs(1));
    EXPECT_TRUE(state.calls.back().stopping());
  });
}

// A cluster's fleet must see the job fail, or it would submit the next one at once, for ever.
TEST_F(DrainTest, TooLittleTimeAcquiresNoLeaseAndFails) {
  options_.drain_at = After(absl::Seconds(20));
  options_.shortest_run = absl::Seconds(30);
  OfferLease(LeaseOf({"a"}));
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  const absl::Status status = Join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--time"));
  server_.With([](State& state) { EXPECT_EQ(state.acquires, 0); });
}

// The first lease takes half of the remaining time to reach its first step, so another lease would
// need all of the rest or more.
TEST_F(DrainTest, SlowStartsPreventALastLease) {
  const TimePoint end = After(absl::Seconds(4));
  options_.drain_at = end;
  options_.shortest_run = absl::ZeroDuration();
  OfferLease(LeaseOf({"a"}, "lease-1"));
  OfferLease(LeaseOf({"b"}, "lease-2", 12));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    const TimePoint now = std::chrono::steady_clock::now();
    std::this_thread::sleep_until(now + (end - now) / 2);
    session.CountStep({});
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(Join().ok());
  server_.With([](State& state) {
    EXPECT_EQ(EventsOf(state, "a"), 1);
    EXPECT_EQ(state.acquires, 1);
  });
}

TEST_F(DrainTest, DrainWhileWaitingForALeaseEndsAtOnce) {
  server_.With([](State& state) { state.lease_duration = absl::Minutes(4); });
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  // The second call, which is held for 30 s.
  EXPECT_TRUE(server_.WaitUntil(
      [](const State& state) { return state.acquires == 2 && state.held_answers == 1; }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Stop().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(DrainTest, DrainBeforeRegistrationEndsAtOnce) {
  server_.Stop();
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  EXPECT_TRUE(Stop().ok());
}

}  // namespace
}  // namespace lengthwise::worker
