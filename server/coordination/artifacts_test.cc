// Uploads to a server whose object store takes smaller checkpoints than the server.
#include "server/coordination/artifacts.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/testing/s3_fake_store.h"

namespace lengthwise::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMostInS3 = int64_t{5} << 30;

std::string FakeDirectory() {
  std::string directory = NewDirectory() + ".fake";
  EXPECT_TRUE(platform::CreateDirectories(directory).ok());
  return directory;
}

class ArtifactsTest : public testing::Test {
 protected:
  ArtifactsTest() {
    coordinator_.options().artifacts = "s3://bucket/checkpoints";
    coordinator_.options().s3 = fake_.options();
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
    coordinator_.Create("sort", 1, 1);
    lease_ = coordinator_.Acquire("w");
  }

  // Asks for the URL of an upload, as workers do.
  absl::Status Sign(int64_t size_bytes) {
    v1::SignTransferRequest request;
    request.set_lease_id(lease_.lease_id());
    request.set_fencing_token(lease_.fencing_token());
    request.set_trial(lease_.trials(0).trial());
    request.set_sha256(platform::Sha256Hex("model"));
    request.set_size_bytes(size_bytes);
    request.set_direction(v1::SignTransferRequest::PUT);
    return coordinator_->artifacts().SignTransfer(request, "anonymous").status();
  }
  // Starts an upload through the server, as workers of earlier releases do.
  absl::Status Relay(int64_t size_bytes) {
    v1::UploadArtifactRequest::Header header;
    header.set_lease_id(lease_.lease_id());
    header.set_fencing_token(lease_.fencing_token());
    header.set_trial(lease_.trials(0).trial());
    header.set_sha256(platform::Sha256Hex("model"));
    header.set_size_bytes(size_bytes);
    header.set_step(1);
    return coordinator_->artifacts().Write(header, "anonymous").status();
  }

  S3FakeStore fake_{FakeDirectory()};
  TestCoordinator coordinator_;
  v1::Lease lease_;
};

// UNAVAILABLE would make a worker try again forever.
TEST_F(ArtifactsTest, TooLargeForTheStoreIsRefusedForGood) {
  ASSERT_EQ(lease_.trials_size(), 1);
  EXPECT_EQ(Sign(kMostInS3), absl::OkStatus());
  EXPECT_EQ(Relay(kMostInS3), absl::OkStatus());
  for (const absl::Status& refused : {Sign(kMostInS3 + 1), Relay(kMostInS3 + 1)}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("s3://bucket/checkpoints takes up to 5368709120"),
                      HasSubstr("--artifacts DIR")));
  }
}

TEST_F(ArtifactsTest, TooLargeForTheServerIsRefusedForGood) {
  ASSERT_EQ(lease_.trials_size(), 1);
  const int64_t most = coordinator_.options().max_artifact_bytes;
  for (const absl::Status& refused : {Sign(most + 1), Relay(most + 1)}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("this server accepts up to 8589934592"));
  }
}

}  // namespace
}  // namespace lengthwise::server
