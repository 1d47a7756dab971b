// A server whose checkpoints are in an object store (--artifacts s3://...): the fence of an ended
// lease, restarts, restoration into another bucket, and a store that hangs.
#include <chrono>
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/http_client.h"
#include "platform/sha256.h"
#include "server/coordination/testing/housekeeping_fixture.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/s3_artifact_store.h"
#include "server/storage/s3_client.h"
#include "server/storage/testing/s3_fake_store.h"

namespace lengthwise::server {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string StoreDirectory() {
  std::string directory = NewDirectory() + ".fake";
  EXPECT_TRUE(platform::CreateDirectories(directory).ok());
  return directory;
}

class CoreObjectStoreTest : public CoreHousekeepingTest {
 protected:
  CoreObjectStoreTest() { Reopen(); }

  void Reopen() {
    coordinator_.Close();
    coordinator_.options().artifacts = "s3://bucket/checkpoints";
    coordinator_.options().s3 = fake_.options();
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }
  v1::SignTransferRequest ToPut(const v1::Lease& lease, const std::string& bytes) {
    v1::SignTransferRequest request;
    request.set_lease_id(lease.lease_id());
    request.set_fencing_token(lease.fencing_token());
    request.set_trial(lease.trials(0).trial());
    request.set_sha256(platform::Sha256Hex(bytes));
    request.set_size_bytes(static_cast<int64_t>(bytes.size()));
    request.set_direction(v1::SignTransferRequest::PUT);
    return request;
  }
  absl::StatusOr<v1::SignTransferResponse> Sign(const v1::SignTransferRequest& request) {
    return coordinator_->artifacts().SignTransfer(request, "anonymous");
  }
  int Send(const v1::SignTransferResponse& transfer, const std::string& bytes) {
    const auto response =
        http_->Send({.method = "PUT",
                     .url = transfer.url(),
                     .headers = {transfer.headers().begin(), transfer.headers().end()},
                     .body = bytes});
    return response.ok() ? response->status : 0;
  }
  // Trains a trial. Returns a request that evaluates it.
  v1::EvaluateTrialRequest TrainedTrial() {
    v1::EvaluateTrialRequest request;
    request.set_trial(Create("weights") + "/trials/lr0-seed0");
    request.mutable_evaluation()->add_lengths(9);
    const v1::Lease lease = coordinator_.Acquire("w");
    Train(lease);
    End(lease, v1::Outcome::COMPLETED);
    return request;
  }
  std::unique_ptr<S3Client> Client(const std::string& place) {
    return OpenS3(place, fake_.options()).value();
  }

  S3FakeStore fake_{StoreDirectory()};
  const std::unique_ptr<platform::HttpClient> http_ = platform::HttpClient::Create().value();
};

TEST_F(CoreObjectStoreTest, EventNeedsAStoredCheckpoint) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  const auto put = Sign(ToPut(lease, "model"));
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_FALSE(put->stored());
  // Sent to the server before the store has the bytes, and before the server asked the store.
  const auto checkpoint = CheckpointEvent(lease, 0, 1, 10, "model");
  EXPECT_EQ(coordinator_.Send(lease, {checkpoint})->refusal(),
            v1::StreamEventsResponse::NOT_STORED);
  EXPECT_EQ(Send(*put, "other"), 400);
  EXPECT_EQ(Send(*put, "model"), 200);
  EXPECT_TRUE(Sign(ToPut(lease, "model"))->stored());
  EXPECT_EQ(coordinator_.Send(lease, {checkpoint})->acknowledged_sequence(), 1);
}

TEST_F(CoreObjectStoreTest, ExpiredLeaseCannotCommitWhatItSent) {
  const std::string experiment = Create("weights");
  const v1::Lease old = coordinator_.Acquire("w");
  const auto put = Sign(ToPut(old, "old model"));
  ASSERT_TRUE(put.ok()) << put.status();
  coordinator_.Advance(absl::Minutes(2));
  ASSERT_EQ(coordinator_.Register("w2"), absl::OkStatus());
  const v1::Lease next = coordinator_.Acquire("w2");
  ASSERT_THAT(next.trials(), SizeIs(1));
  // The URL lives longer than the lease.
  EXPECT_EQ(Send(*put, "old model"), 200);
  EXPECT_EQ(Sign(ToPut(old, "old model")).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(coordinator_.Send(old, {CheckpointEvent(old, 0, 1, 10, "old model")})->refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
  // What it sent is swept when the trial ends.
  ASSERT_EQ(coordinator_.Upload(next, 0, 30, "model"), absl::OkStatus());
  ASSERT_EQ(coordinator_
                .Send(next, {CheckpointEvent(next, 0, 1, 30, "model"),
                             OutcomeEvent(next, 0, 2, 30, v1::Outcome::COMPLETED, "")})
                ->refusal(),
            0);
  const auto client = Client("s3://bucket/checkpoints");
  std::vector<std::string> keys;
  for (int i = 0; i < 200 && keys.size() != 2; ++i) {
    keys.clear();
    ASSERT_TRUE(client->List("", [&](const S3Object& object) { keys.push_back(object.key); }).ok());
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_THAT(keys,
              testing::UnorderedElementsAre(
                  "lengthwise_store.json",
                  absl::StrCat("sort-1/lr0-seed0/", platform::Sha256Hex("model"), ".safetensors")));
}

// A list that lags behind, as those of some stores do, must not make trials lose steps.
TEST_F(CoreObjectStoreTest, RestartFindsWhatTheListLacks) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  coordinator_.Release("w", lease);
  fake_.Set("hide", platform::Sha256Hex("checkpoint 3"));
  Reopen();
  const v1::Lease next = coordinator_.Acquire("w");
  ASSERT_THAT(next.trials(), SizeIs(1));
  EXPECT_EQ(next.trials(0).checkpoint_step(), 30);
}

TEST_F(CoreObjectStoreTest, BackupIsRestoredIntoAnotherBucket) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  ASSERT_EQ(coordinator_.BackUp("b"), absl::OkStatus());
  TestCoordinator copy;
  copy.options().restore_from = coordinator_.data_dir() + "/backups/b";
  copy.options().artifacts = "s3://other/place";
  copy.options().take_over_artifacts = true;
  copy.options().s3 = fake_.options();
  const absl::Status lacking = copy.Open();
  EXPECT_EQ(lacking.code(), absl::StatusCode::kDataLoss) << lacking;
  EXPECT_THAT(std::string(lacking.message()), HasSubstr("s3://other/place has no checkpoint of 1"));
  // As "aws s3 sync", which copies no metadata of the first bucket's server.
  for (const char* bytes : {"checkpoint 2", "checkpoint 3"}) {
    ASSERT_TRUE(
        Client("s3://other/place")
            ->Replace(absl::StrCat("sort-1/lr0-seed0/", platform::Sha256Hex(bytes), ".safetensors"),
                      bytes)
            .ok());
  }
  ASSERT_EQ(copy.Open(), absl::OkStatus());
  ASSERT_EQ(copy.Register("w"), absl::OkStatus());
  copy.Advance(absl::Minutes(2));  // the lease of the backup expires
  ASSERT_EQ(copy.Register("w"), absl::OkStatus());
  const v1::Lease next = copy.Acquire("w");
  ASSERT_THAT(next.trials(), SizeIs(1));
  EXPECT_EQ(next.trials(0).checkpoint_step(), 30);
  EXPECT_EQ(copy.Download(next, 0, platform::Sha256Hex("checkpoint 3")).value_or(""),
            "checkpoint 3");
  // A resumed trial may store its checkpoint again.
  EXPECT_EQ(copy.Upload(next, 0, 30, "checkpoint 3"), absl::OkStatus());
  EXPECT_TRUE(copy->artifacts().SignTransfer(ToPut(next, "checkpoint 2"), "anonymous")->stored());
  // The first server goes on with its own bucket.
  EXPECT_EQ(coordinator_.Upload(lease, 0, 40, "checkpoint 4"), absl::OkStatus());
}

TEST_F(CoreObjectStoreTest, HangingStoreDoesNotStopHeartbeats) {
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  Train(lease);
  fake_.Set("hang", "sort-1");
  auto signing = std::async(std::launch::async, [&] { return Sign(ToPut(lease, "model")); });
  const auto is_signing = [&] {
    return signing.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  };
  EXPECT_TRUE(fake_.AwaitMoreRequests(platform::Sha256Hex("model"), 0));
  EXPECT_TRUE(is_signing());
  const absl::Time start = absl::Now();
  EXPECT_TRUE(coordinator_.Heartbeat("w", {lease}).ok());
  // Ends the trial, which deletes a checkpoint.
  End(lease, v1::Outcome::COMPLETED);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  EXPECT_TRUE(is_signing());
  fake_.Set("hang", "");
  const auto put = signing.get();
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_FALSE(put->stored());
}

TEST_F(CoreObjectStoreTest, HangingCopyDoesNotStopHeartbeats) {
  const v1::EvaluateTrialRequest request = TrainedTrial();
  Create("weights");
  const v1::Lease lease = coordinator_.Acquire("w");
  fake_.Set("hang", "sort_evaluation");
  auto evaluation = std::async(std::launch::async, [&] { return coordinator_.Evaluate(request); });
  EXPECT_TRUE(fake_.AwaitMoreRequests("sort_evaluation", 0));
  const absl::Time start = absl::Now();
  EXPECT_TRUE(coordinator_.Heartbeat("w", {lease}).ok());
  Create("weights");
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  EXPECT_EQ(evaluation.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  // The store ends the request without an answer, and libcurl may send it again.
  fake_.Set("hang", "");
  const absl::Status ended = evaluation.get().status();
  EXPECT_TRUE(ended.ok() || absl::IsUnavailable(ended)) << ended;
  EXPECT_TRUE(coordinator_.Evaluate(request).ok());
}

TEST_F(CoreObjectStoreTest, ServerStopsWhileACopyHangs) {
  const v1::EvaluateTrialRequest request = TrainedTrial();
  fake_.Set("hang", "sort_evaluation");
  auto evaluation = std::async(std::launch::async, [&] { return coordinator_.Evaluate(request); });
  ASSERT_TRUE(fake_.AwaitMoreRequests("sort_evaluation", 0));
  const absl::Time start = absl::Now();
  coordinator_->Stop();
  coordinator_->Interrupt();
  EXPECT_TRUE(absl::IsUnavailable(evaluation.get().status()));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  fake_.Set("hang", "");
  Reopen();
  EXPECT_TRUE(coordinator_.Evaluate(request).ok());
}

}  // namespace
}  // namespace lengthwise::server
