// Calls of the server, leases, and their effect on a running pack.
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "worker/connection/testing/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Directive = PackSession::Directive;
using State = FakeWorkerService::State;

TEST_F(ConnectionTest, RegistersLeasesRunsAndSendsEverything) {
  OfferLease(LeaseOf({"a", "b"}));
  OfferLease(LeaseOf({"c"}, "lease-2", 12));
  StartWorker([](const v1::Lease& lease, PackSession& session) {
    for (int64_t step = 1; step <= 20; ++step) {
      for (int trial = 0; trial < lease.trials_size(); ++trial) session.Emit(trial, Point(step));
    }
    for (int trial = 0; trial < lease.trials_size(); ++trial) session.Emit(trial, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "c") == 21; }));
  EXPECT_TRUE(Stop().ok());
  for (const std::string trial : {"a", "b", "c"}) ExpectPointsAndOutcome(trial, 20);
  server_.With([](State& state) {
    ASSERT_THAT(state.registrations, SizeIs(1));
    EXPECT_EQ(state.registrations[0].worker_id(), "test-worker");
    EXPECT_EQ(state.registrations[0].max_pack_size(), 4);
    EXPECT_EQ(state.registrations[0].provenance().device(), "a fake");
    EXPECT_THAT(state.releases, IsEmpty());
  });
}

TEST_F(ConnectionTest, ReasonForNoLeaseIsLoggedOnce) {
  testing::internal::CaptureStderr();
  const auto set_reason = [this](const std::string& reason) {
    server_.With([&](State& state) { state.no_lease_reason = reason; });
  };
  // Returns after the answers to at least two calls.
  const auto ask = [this] {
    const int before = server_.With([](State& state) { return state.acquires; });
    EXPECT_TRUE(
        server_.WaitUntil([&](const State& state) { return state.acquires >= before + 3; }));
  };
  set_reason("no trials are queued");
  StartWorker([](const v1::Lease&, PackSession& session) {
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  ask();
  set_reason("1 trial waits");
  ask();
  OfferLease(LeaseOf({"a"}));
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 1; }));
  ask();
  EXPECT_TRUE(Stop().ok());
  std::vector<std::string> reasons;
  for (const absl::string_view line :
       absl::StrSplit(testing::internal::GetCapturedStderr(), '\n')) {
    const size_t reason = line.find("INFO no lease: ");
    if (reason != absl::string_view::npos) reasons.emplace_back(line.substr(reason));
  }
  EXPECT_THAT(reasons, ElementsAre("INFO no lease: no trials are queued",
                                   "INFO no lease: 1 trial waits", "INFO no lease: 1 trial waits"))
      << "the last after a lease";
}

// gRPC ends calls with CANCELLED when a server's shutdown deadline passes.
TEST_F(ConnectionTest, CancelledCallsAreRetried) {
  const std::string bytes = "a checkpoint";
  const std::string another(2'000'000, 'a');  // too large for a batch
  v1::Lease lease = LeaseOf({"a"});
  lease.mutable_trials(0)->mutable_checkpoint()->set_sha256(platform::Sha256Hex(bytes));
  lease.mutable_trials(0)->mutable_checkpoint()->set_size_bytes(12);
  server_.With([&](State& state) {
    state.artifacts[platform::Sha256Hex(bytes)] = bytes;
    const grpc::Status cancelled(grpc::StatusCode::CANCELLED, "Cancelling all calls");
    state.call_failures = {cancelled, cancelled};
    state.download_failures = {cancelled};
    state.upload_failures = {cancelled};
  });
  OfferLease(lease);
  StartWorker([&](const v1::Lease&, PackSession& session) {
    EXPECT_EQ(session.FetchCheckpoint(0).value_or("none"), bytes);
    session.EmitCheckpoint(0, 1, another);
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil(
      [](const State& state) { return EventsOf(state, "a") == 2 && !state.calls.empty(); }));
  EXPECT_TRUE(Stop().ok());
  server_.With([&](State& state) {
    EXPECT_THAT(state.registrations, SizeIs(1));
    EXPECT_TRUE(state.artifacts.contains(platform::Sha256Hex(another)));
    EXPECT_THAT(state.call_failures, IsEmpty());
    EXPECT_THAT(state.upload_failures, IsEmpty());
  });
}

TEST_F(ConnectionTest, LostLeaseStopsAllWrites) {
  OfferLease(LeaseOf({"a"}));
  OfferLease(LeaseOf({"b"}, "lease-2", 12));
  std::promise<Directive> directive;
  StartWorker([&](const v1::Lease& lease, PackSession& session) {
    if (lease.lease_id() == "lease-1") {
      server_.With([](State& state) { state.lost_leases.insert("lease-1"); });
      directive.set_value(AwaitDirective(session, 0));
      session.Emit(0, Point(1));
    } else {
      session.Emit(0, Completed());
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(directive.get_future().get(), Directive::kLost);
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "b") == 1; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([](State& state) {
    EXPECT_EQ(EventsOf(state, "a"), 0);
    EXPECT_THAT(state.releases, IsEmpty());
  });
}

TEST_F(ConnectionTest, StaleFencingTokenStopsTheTrial) {
  server_.With([](State& state) { state.stale_trials.insert("a"); });
  OfferLease(LeaseOf({"a", "b"}));
  std::promise<std::pair<Directive, Directive>> directives;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.Emit(0, Point(1));
    const Directive first = AwaitDirective(session, 0);
    directives.set_value({first, session.GetDirective(1)});
    session.Emit(1, Completed());
    return absl::OkStatus();
  });
  EXPECT_EQ(directives.get_future().get(), std::pair(Directive::kCancelled, Directive::kContinue));
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "b") == 1; }));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ConnectionTest, CancelledTrialStopsAlone) {
  server_.With([](State& state) { state.cancelled_trials = {"b"}; });
  OfferLease(LeaseOf({"a", "b"}));
  std::promise<std::pair<Directive, Directive>> directives;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    const Directive second = AwaitDirective(session, 1);
    directives.set_value({session.GetDirective(0), second});
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_EQ(directives.get_future().get(), std::pair(Directive::kContinue, Directive::kCancelled));
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 1; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([](State& state) { EXPECT_THAT(state.releases, IsEmpty()); });
}

TEST_F(ConnectionTest, GoesOnIfTheServerForgotIt) {
  absl::Notification forgotten;
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    forgotten.WaitForNotification();
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  const auto holds_lease = [](const State& state, size_t registrations) {
    return state.registrations.size() == registrations && !state.calls.empty() &&
           state.calls.back().leases_size() == 1;
  };
  EXPECT_TRUE(server_.WaitUntil([&](const State& state) { return holds_lease(state, 1); }));
  server_.With([](State& state) {
    state.is_registered = false;
    state.calls.clear();
  });
  // Every call says who calls; the pack continues.
  EXPECT_TRUE(server_.WaitUntil([&](const State& state) { return holds_lease(state, 2); }));
  forgotten.Notify();
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 1; }));
  server_.With([](State& state) { state.is_registered = false; });
  EXPECT_TRUE(
      server_.WaitUntil([](const State& state) { return state.registrations.size() == 3; }));
  // Another database counts its tokens from 1.
  OfferLease(LeaseOf({"b"}, "other-1", 1));
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "b") == 1; }));
  EXPECT_TRUE(Stop().ok());
}

// The answer with the lease was late: the worker had asked again, and the server granted it again.
TEST_F(ConnectionTest, LeaseThatIsOfferedTwiceRunsOnce) {
  OfferLease(LeaseOf({"a"}));
  OfferLease(LeaseOf({"a"}));
  OfferLease(LeaseOf({"b"}, "lease-2", 12));
  std::atomic<int> runs = 0;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    ++runs;
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "b") == 1; }));
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(runs, 2) << "of a and of b";
}

// From the answer on: the server ends a lease that a worker neither lists nor wants.
TEST_F(ConnectionTest, LeaseIsListedFromItsAnswerOnUntilItIsDone) {
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    EXPECT_TRUE(server_.WaitUntil([](const State& state) {
      return !state.calls.empty() && state.calls.back().leases_size() == 1;
    }));
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 1; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([](State& state) {
    int64_t number = 0;
    bool was_listed = false;
    for (const v1::SynchronizeRequest& call : state.calls) {
      EXPECT_GT(call.number(), number) << "numbers ascend";
      number = call.number();
      EXPECT_EQ(call.session(), state.calls[0].session());
      EXPECT_NE(call.session(), "");
      was_listed = was_listed || call.leases_size() > 0;
      EXPECT_TRUE(was_listed || call.wants_lease()) << "call " << number;
    }
    EXPECT_TRUE(was_listed);
  });
}

TEST_F(ConnectionTest, FailedRunnerReleasesLeaseAndContinues) {
  OfferLease(LeaseOf({"a"}));
  OfferLease(LeaseOf({"b"}, "lease-2", 12));
  StartWorker([&](const v1::Lease& lease, PackSession& session) {
    if (lease.lease_id() == "lease-1") return absl::ResourceExhaustedError("out of GPU memory");
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "b") == 1; }));
  server_.With([](State& state) {
    ASSERT_THAT(state.releases, SizeIs(1));
    EXPECT_EQ(state.releases[0].lease_id(), "lease-1");
    EXPECT_EQ(state.releases[0].reason(), "the worker cannot run it: out of GPU memory");
    EXPECT_TRUE(state.releases[0].unfit()) << "others may be able to run it";
    EXPECT_FALSE(state.releases[0].lost()) << "the worker goes on";
  });
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ConnectionTest, LostDeviceEndsTheWorkerAfterItsLease) {
  OfferLease(LeaseOf({"a", "b"}));
  OfferLease(LeaseOf({"c"}, "lease-2", 12));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.Emit(0, Completed());
    runner_->device = absl::UnavailableError("the GPU is lost");
    return runner_->device;
  });
  EXPECT_EQ(Join(), absl::UnavailableError("the GPU is lost"));
  server_.With([](State& state) {
    EXPECT_EQ(EventsOf(state, "a"), 1) << "what ran before is sent";
    ASSERT_THAT(state.releases, SizeIs(1)) << "b goes to another worker";
    EXPECT_THAT(state.releases[0].reason(), HasSubstr("the GPU is lost"));
    EXPECT_TRUE(state.releases[0].lost());
    EXPECT_THAT(state.leases, SizeIs(1)) << "c stays with the server";
    EXPECT_TRUE(state.calls.back().stopping());
  });
}

TEST_F(ConnectionTest, HeartbeatsCarryTheNewestProgressAndTheRates) {
  OfferLease(LeaseOf({"a", "b"}));
  absl::Notification seen;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    for (int64_t done = 1; done <= 1000; ++done) {
      for (int trial = 0; trial < 2; ++trial) {
        v1::TrialProgress progress;
        progress.set_phase(v1::TrialProgress::TRAINING);
        progress.set_done(done);
        progress.set_steps_per_second(12.5);
        session.ReportProgress(trial, progress);
      }
    }
    seen.WaitForNotification();
    session.Emit(0, Completed());
    session.Emit(1, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) {
    for (const v1::SynchronizeRequest& heartbeat : state.calls) {
      if (heartbeat.progress_size() == 2 && heartbeat.progress(1).done() == 1000) {
        EXPECT_EQ(heartbeat.progress(1).trial(), "b");
        EXPECT_EQ(heartbeat.progress(1).attempt(), 1);
        EXPECT_EQ(heartbeat.leases(0).fencing_token(), 11);
        // Two members make 12.5 steps of the pack per second.
        EXPECT_EQ(heartbeat.measurements().steps_per_second(), 12.5);
        EXPECT_EQ(heartbeat.measurements().model_steps_per_second(), 25);
        EXPECT_TRUE(heartbeat.measurements().has_time());
        return true;
      }
    }
    return false;
  }));
  seen.Notify();
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ConnectionTest, HeartbeatsKeepCountersAfterTheRun) {
  Measurements measurements;
  options_.session.measurements = &measurements;
  OfferLease(LeaseOf({"a", "b"}));
  absl::Notification seen;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.CountStep({.models = 2, .seconds = 0.25, .data_wait_seconds = 0.125});
    session.CountEvaluation(3);
    session.CountCheckpoint(0.5, 1000);
    seen.WaitForNotification();
    session.Emit(0, Completed());
    session.Emit(1, Completed());
    return absl::OkStatus();
  });
  const auto told = [](const State& state, int32_t trials) {
    if (state.calls.empty()) return false;
    const v1::WorkerMeasurements& newest = state.calls.back().measurements();
    return newest.trials() == trials && newest.steps() == 1 && newest.model_steps() == 2 &&
           newest.step_seconds().sum() == 0.25 && newest.data_wait_seconds() == 0.125 &&
           newest.evaluation_seconds() == 3 && newest.checkpoints() == 1 &&
           newest.checkpoint_seconds() == 0.5 && newest.checkpoint_bytes() == 1000;
  };
  EXPECT_TRUE(server_.WaitUntil([&](const State& state) { return told(state, 2); }));
  seen.Notify();
  // The worker is idle, and its counters are not reset.
  EXPECT_TRUE(server_.WaitUntil([&](const State& state) { return told(state, 0); }));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(ConnectionTest, FinalRefusalOfTheRegistrationEndsTheWorker) {
  server_.With([](State& state) {
    state.call_failures = {
        {grpc::StatusCode::UNAVAILABLE, "starting"},
        {grpc::StatusCode::FAILED_PRECONDITION, "build both from the same source"}};
  });
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  EXPECT_EQ(Join(), absl::FailedPreconditionError(
                        "the server refuses this worker: build both from the same source"));
}

TEST_F(ConnectionTest, NewWorkerWithWrongTokenExits) {
  server_.With([](State& state) {
    state.call_failures = {{grpc::StatusCode::UNAUTHENTICATED, "the token expired"}};
  });
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  EXPECT_EQ(Join(),
            absl::UnauthenticatedError("the server refuses this worker: the token expired"));
}

// The token may be renewed during training, so the worker keeps its progress.
TEST_F(ConnectionTest, WorkerWithExpiredTokenKeepsTraining) {
  const grpc::Status expired(grpc::StatusCode::UNAUTHENTICATED, "the token expired");
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    server_.With([&](State& state) {
      state.call_failures = {expired, expired, expired};
      state.upload_failures = {expired, expired};
      // The server was also restarted in the meantime.
      state.is_registered = false;
    });
    session.EmitCheckpoint(0, 1, "a checkpoint");
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) {
    return EventsOf(state, "a") == 2 && state.registrations.size() == 2;
  }));
  EXPECT_TRUE(Stop().ok());
  server_.With([](State& state) {
    EXPECT_TRUE(state.artifacts.contains(platform::Sha256Hex("a checkpoint")));
    EXPECT_THAT(state.call_failures, IsEmpty());
    EXPECT_THAT(state.upload_failures, IsEmpty());
  });
}

TEST_F(ConnectionTest, ChannelSettingsErrorIsExplainedAndFinal) {
  options_.explain = [](const absl::Status& status) {
    return absl::IsUnavailable(status) ? absl::FailedPreconditionError("set tls_ca")
                                       : absl::OkStatus();
  };
  server_.With([](State& state) {
    state.call_failures = {{grpc::StatusCode::UNAVAILABLE, "certificate verify failed"}};
  });
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  EXPECT_EQ(Join(), absl::FailedPreconditionError("set tls_ca")) << "the worker refuses";
}

TEST_F(ConnectionTest, IdleWorkerEndsWhenAskedTo) {
  // Longer than registration takes on a busy machine, because an unreachable server counts as idle,
  // too.
  options_.exit_when_idle = absl::Seconds(1);
  OfferLease(LeaseOf({"a"}));
  StartWorker([](const v1::Lease&, PackSession& session) {
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(Join().ok());
  server_.With([](State& state) { EXPECT_EQ(EventsOf(state, "a"), 1); });
}

TEST_F(ConnectionTest, CallsFollowTheIntervalOfTheNewestAnswer) {
  // With the first answer's interval, the third call would come tomorrow.
  server_.With([](State& state) { state.heartbeat_interval = absl::Hours(24); });
  OfferLease(LeaseOf({"a"}));
  absl::Notification changed, done;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    server_.With([](State& state) { state.heartbeat_interval = absl::Milliseconds(1); });
    changed.Notify();
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  changed.WaitForNotification();
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return state.calls.size() > 5; }));
  EXPECT_TRUE(Stop().ok());
}

// The server of a large fleet: a short interval, and slow answers.
TEST_F(ConnectionTest, CancellationReachesTheRunnerWhileAHeartbeatIsHeld) {
  server_.With([](State& state) {
    state.lease_duration = absl::Minutes(4);
    state.holds_answers = true;
  });
  OfferLease(LeaseOf({"a"}));
  std::promise<Directive> directive;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    // The heartbeat that is held may be one from before the lease: a real server ends it, too.
    server_.With([](State& state) { state.holds_answers = false; });
    EXPECT_TRUE(server_.WaitUntil([](const State& state) {
      return !state.calls.empty() && state.calls.back().leases_size() == 1;
    }));
    server_.With([](State& state) { state.holds_answers = true; });
    EXPECT_TRUE(server_.WaitUntil([](const State& state) { return state.held_answers == 1; }));
    server_.With([](State& state) { state.cancelled_trials = {"a"}; });
    directive.set_value(AwaitDirective(session, 0));
    return absl::OkStatus();
  });
  EXPECT_EQ(directive.get_future().get(), Directive::kCancelled);
  EXPECT_TRUE(Stop().ok());
  server_.With([](State& state) {
    EXPECT_EQ(state.calls.back().wait().seconds(), 0) << "it leaves";
    EXPECT_EQ(state.calls[1].wait().seconds(), 30)
        << "a quarter of the lease duration, at most 30 s";
  });
}

TEST_F(ConnectionTest, HeldAnswersPaceTheCalls) {
  server_.With([](State& state) {
    state.heartbeat_interval = absl::Milliseconds(1);
    state.lease_duration = absl::Milliseconds(800);
  });
  const auto start = std::chrono::steady_clock::now();
  StartWorker([](const v1::Lease&, PackSession&) { return absl::OkStatus(); });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return state.calls.size() >= 4; }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(400))
      << "two were held for 200 ms each";
  EXPECT_TRUE(Stop().ok());
}

}  // namespace
}  // namespace lengthwise::worker
