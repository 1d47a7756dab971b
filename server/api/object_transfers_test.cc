// SignTransfer over a real connection, with an object store.
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/api/testing/test_server.h"
#include "server/storage/testing/s3_fake_store.h"

namespace lengthwise::server {
namespace {

std::string NewFakeDirectory() {
  std::string directory = NewDirectory() + ".fake";
  EXPECT_TRUE(platform::CreateDirectories(directory).ok());
  return directory;
}

class ObjectTransfersTest : public testing::Test {
 protected:
  ObjectTransfersTest() {
    RpcServer::Options options;
    options.transfer_threads = 1;
    server_.Serve(std::move(options));
  }

  v1::SignTransferRequest ToPut(const std::string& trial, const std::string& bytes) {
    const v1::Lease& lease = server_.LeaseOf(trial);
    v1::SignTransferRequest request;
    request.set_lease_id(lease.lease_id());
    request.set_fencing_token(lease.fencing_token());
    request.set_trial(trial);
    request.set_sha256(platform::Sha256Hex(bytes));
    request.set_size_bytes(static_cast<int64_t>(bytes.size()));
    request.set_direction(v1::SignTransferRequest::PUT);
    return request;
  }
  grpc::Status Sign(const v1::SignTransferRequest& request, v1::SignTransferResponse& response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    return v1::WorkerService::NewStub(server_.Connect())
        ->SignTransfer(&context, request, &response);
  }

  S3FakeStore fake_{NewFakeDirectory()};
  TestServer server_{ResolveSimply, [this](TestCoordinator& core) {
                       core.options().artifacts = "s3://bucket/checkpoints";
                       core.options().s3 = fake_.options();
                     }};
};

TEST_F(ObjectTransfersTest, SignsForTheLeaseAlone) {
  const std::string trial = server_.AddExperiment("sort", 1) + "/trials/lr0-seed0";
  v1::SignTransferResponse response;
  v1::SignTransferRequest request = ToPut(trial, "model");
  EXPECT_TRUE(Sign(request, response).ok());
  EXPECT_FALSE(response.stored());
  EXPECT_TRUE(response.headers().contains("x-amz-checksum-sha256"));
  EXPECT_EQ(response.headers().at("if-none-match"), "*");
  request.set_fencing_token(request.fencing_token() + 1);
  EXPECT_EQ(Sign(request, response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  request = ToPut(trial, "model");
  request.clear_direction();
  EXPECT_EQ(Sign(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request = ToPut(trial, "model");
  request.set_size_bytes(int64_t{6} << 30);
  EXPECT_EQ(Sign(request, response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// Users share a few threads, which a slow store may hold.
TEST_F(ObjectTransfersTest, CheckpointsDoNotWaitForUsers) {
  const std::string trial = server_.AddExperiment("sort", 1) + "/trials/lr0-seed0";
  server_.PutModel(trial, 10, "a user's model");
  const std::string sha256 = platform::Sha256Hex("a user's model");
  const int64_t requests = fake_.CountRequests(sha256);
  fake_.Set("hang", sha256);
  std::string downloaded;
  auto downloading = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
    v1::DownloadModelRequest request;
    request.set_name(trial);
    const auto reader =
        v1::ExperimentService::NewStub(server_.Connect())->DownloadModel(&context, request);
    v1::DownloadModelResponse response;
    while (reader->Read(&response)) downloaded += response.data();
    return reader->Finish();
  });
  const auto is_downloading = [&] {
    return downloading.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  };
  // From here on the download holds the only thread for users.
  EXPECT_TRUE(fake_.AwaitMoreRequests(sha256, requests));
  EXPECT_TRUE(is_downloading());
  v1::SignTransferResponse response;
  const grpc::Status signing = Sign(ToPut(trial, "another"), response);
  EXPECT_TRUE(signing.ok()) << signing.error_message();
  EXPECT_TRUE(is_downloading());
  fake_.Set("hang", "");
  const grpc::Status download = downloading.get();
  EXPECT_TRUE(download.ok()) << download.error_message();
  EXPECT_EQ(downloaded, "a user's model");
}

}  // namespace
}  // namespace lengthwise::server
