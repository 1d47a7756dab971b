// Tests the transfer of checkpoints to the server and back.
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/connection/server_calls.h"
#include "worker/connection/testing/connection_fixture.h"

namespace lengthwise::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Directive = PackSession::Directive;
using State = FakeWorkerService::State;

class CheckpointDeliveryTest : public ConnectionTest {};

TEST_F(CheckpointDeliveryTest, CheckpointIsStoredBeforeItsEvent) {
  server_.With([](State& state) {
    state.upload_failures = {{grpc::StatusCode::UNAVAILABLE, "busy"},
                             {grpc::StatusCode::DATA_LOSS, "damaged on its way"}};
  });
  const std::string bytes(3'000'000, 'w');  // several parts
  OfferLease(LeaseOf({"a"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.Emit(0, Point(1));
    session.EmitCheckpoint(0, 1, bytes);
    session.Emit(0, Point(2));
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 4; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([&](State& state) {
    // Only the order of the first event and the upload may vary.
    std::erase(state.history, "event a 1");
    EXPECT_THAT(state.history, ElementsAre("upload a 1", "event a 2", "event a 3", "event a 4"));
    const v1::Event& checkpoint = state.events["a"][1];
    EXPECT_EQ(checkpoint.step(), 1);
    EXPECT_EQ(checkpoint.checkpoint().size_bytes(), 3'000'000);
    EXPECT_EQ(state.artifacts[checkpoint.checkpoint().sha256()], bytes);
  });
}

TEST_F(CheckpointDeliveryTest, SmallCheckpointsComeWithTheirEvents) {
  server_.With([](State& state) { state.lost_artifacts = 1; });
  OfferLease(LeaseOf({"a", "b", "c"}));
  StartWorker([&](const v1::Lease&, PackSession& session) {
    // The first upload asks whether the server has an object store.
    session.EmitCheckpoint(0, 1, "model a");
    session.Emit(0, Completed());
    EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 2; }));
    session.EmitCheckpoint(1, 1, "model b");
    session.Emit(1, Completed());
    EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "b") == 2; }));
    session.EmitCheckpoint(2, 1, "model c");
    session.Emit(2, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "c") == 2; }));
  EXPECT_TRUE(Stop().ok());
  server_.With([&](State& state) {
    EXPECT_EQ(state.uploads, 2) << "that of a, and that of b, whose artifact the server lost";
    EXPECT_EQ(state.streams, 1);
    for (const char* trial : {"a", "b", "c"}) {
      EXPECT_EQ(state.artifacts[state.events[trial][0].checkpoint().sha256()],
                absl::StrCat("model ", trial));
    }
  });
}

// Regression: such a trial SUCCEEDED without a stored model, and only its log said so.
TEST_F(CheckpointDeliveryTest,
       RegressionACheckpointThatIsRefusedForGoodFailsItsTrialWithTheReason) {
  server_.With([](State& state) {
    state.upload_failures = {{grpc::StatusCode::RESOURCE_EXHAUSTED, "larger than allowed"}};
  });
  OfferLease(LeaseOf({"a", "b"}));
  std::promise<Directive> directive;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.Emit(0, Point(4));
    session.EmitCheckpoint(0, 5, "bytes");
    session.Emit(0, Point(6));
    session.Emit(0, Completed());
    directive.set_value(AwaitDirective(session, 0));
    session.Emit(1, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil(
      [](const State& state) { return EventsOf(state, "a") == 2 && EventsOf(state, "b") == 1; }));
  EXPECT_EQ(directive.get_future().get(), Directive::kCancelled);
  server_.With([](State& state) {
    EXPECT_EQ(state.events["a"][0].step(), 4);
    const v1::Outcome& outcome = state.events["a"][1].outcome();
    EXPECT_EQ(outcome.kind(), v1::Outcome::FAILED_TEMPORARILY);
    EXPECT_THAT(outcome.reason(), HasSubstr("checkpoint of step 5"));
    EXPECT_THAT(outcome.reason(), HasSubstr("larger than allowed"));
    EXPECT_EQ(state.events["b"][0].outcome().kind(), v1::Outcome::COMPLETED);
  });
  EXPECT_TRUE(Stop().ok());
}

TEST_F(CheckpointDeliveryTest, CheckpointFetchIsRetried) {
  const std::string bytes(2'500'000, 'c');
  v1::Lease lease = LeaseOf({"a", "b"});
  lease.mutable_trials(0)->mutable_checkpoint()->set_sha256(platform::Sha256Hex(bytes));
  lease.mutable_trials(0)->mutable_checkpoint()->set_size_bytes(2'500'000);
  server_.With([&](State& state) {
    state.artifacts[platform::Sha256Hex(bytes)] = bytes;
    state.download_failures = {{grpc::StatusCode::UNAVAILABLE, "busy"},
                               {grpc::StatusCode::UNAVAILABLE, "busy"}};
  });
  OfferLease(lease);
  std::promise<absl::StatusOr<std::string>> fetched, damaged, none;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    fetched.set_value(session.FetchCheckpoint(0));
    server_.With([](State& state) { state.damages_downloads = true; });
    damaged.set_value(session.FetchCheckpoint(0));
    none.set_value(session.FetchCheckpoint(1));
    session.Emit(0, Completed());
    session.Emit(1, Completed());
    return absl::OkStatus();
  });
  const absl::StatusOr<std::string> result = fetched.get_future().get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*result, bytes);
  EXPECT_EQ(damaged.get_future().get().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(none.get_future().get().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Stop().ok());
}

// A slow link takes longer for a large checkpoint than any deadline that suits a fast one.
TEST_F(CheckpointDeliveryTest, RegressionTransfersHaveNoDeadline) {
  const std::string bytes(2'500'000, 'c');
  const std::string model(2'500'000, 'm');
  v1::Lease lease = LeaseOf({"a"});
  lease.mutable_trials(0)->mutable_checkpoint()->set_sha256(platform::Sha256Hex(bytes));
  lease.mutable_trials(0)->mutable_checkpoint()->set_size_bytes(2'500'000);
  server_.With([&](State& state) { state.artifacts[platform::Sha256Hex(bytes)] = bytes; });
  OfferLease(lease);
  StartWorker([&](const v1::Lease&, PackSession& session) {
    EXPECT_TRUE(session.FetchCheckpoint(0).ok());
    session.EmitCheckpoint(0, 2, model);
    session.Emit(0, Completed());
    return absl::OkStatus();
  });
  EXPECT_TRUE(server_.WaitUntil([](const State& state) { return EventsOf(state, "a") == 2; }));
  server_.With([&](State& state) {
    EXPECT_EQ(state.downloads, 1);
    EXPECT_TRUE(state.artifacts.contains(platform::Sha256Hex(model)));
    EXPECT_EQ(state.transfers_with_deadline, 0);
  });
  EXPECT_TRUE(Stop().ok());
}

TEST_F(CheckpointDeliveryTest, RegressionStalledTransferIsCancelled) {
  server_.With([](State& state) { state.holds_downloads = true; });
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(server_.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  StallGuard guard(context, absl::Milliseconds(20));
  const auto reader = stub->DownloadArtifact(&context, {});
  v1::DownloadArtifactResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(guard.Explain(ToStatus(reader->Finish())),
            absl::DeadlineExceededError("the transfer moved nothing for 20ms"));
}

TEST_F(CheckpointDeliveryTest, RefusedUploadStopsTheTrial) {
  server_.With([](State& state) {
    state.upload_failures = {{grpc::StatusCode::PERMISSION_DENIED, "stale"}};
  });
  OfferLease(LeaseOf({"a"}));
  std::promise<Directive> directive;
  StartWorker([&](const v1::Lease&, PackSession& session) {
    session.EmitCheckpoint(0, 1, "bytes");
    directive.set_value(AwaitDirective(session, 0));
    return absl::OkStatus();
  });
  EXPECT_EQ(directive.get_future().get(), Directive::kCancelled);
  EXPECT_TRUE(Stop().ok());
}

}  // namespace
}  // namespace lengthwise::worker
