// AdministrationService over a real connection.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/version.h"
#include "proto/administration_service.grpc.pb.h"
#include "server/api/testing/test_server.h"

namespace lengthwise::server {
namespace {

class AdministrationServiceTest : public ::testing::Test {
 protected:
  AdministrationServiceTest() {
    server_.Serve();
    stub_ = v1::AdministrationService::NewStub(server_.Connect());
  }

  // The responses of a backup, and its status.
  std::vector<v1::BackUpResponse> BackUp(const std::string& name, grpc::Status& status) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::BackUpRequest request;
    request.set_name(name);
    const auto reader = stub_->BackUp(&context, request);
    std::vector<v1::BackUpResponse> responses;
    for (v1::BackUpResponse response; reader->Read(&response);) responses.push_back(response);
    status = reader->Finish();
    return responses;
  }

  TestServer server_;
  std::unique_ptr<v1::AdministrationService::Stub> stub_;
};

TEST_F(AdministrationServiceTest, StreamsProgressAndTheEndOfABackup) {
  const std::string trial = server_.AddExperiment("grid", 1) + "/trials/t0";
  // Thousands of pages.
  v1::Event map;
  map.set_trial(trial);
  map.mutable_attention_map()->set_length(1);
  map.mutable_attention_map()->set_layers(1);
  map.mutable_attention_map()->set_heads(1 << 18);
  map.mutable_attention_map()->add_tokens(1);
  map.mutable_attention_map()->add_positions(0);
  map.mutable_attention_map()->set_probabilities(std::string(1 << 20, 'p'));
  server_.Append(std::vector<v1::Event>(8, map));
  grpc::Status status;
  const std::vector<v1::BackUpResponse> responses = BackUp("b", status);
  EXPECT_TRUE(status.ok()) << status.error_message();
  ASSERT_FALSE(responses.empty());
  EXPECT_TRUE(responses.back().complete());
  EXPECT_THAT(responses.back().path(), testing::EndsWith("/backups/b"));
  // As many as a person can follow, not one for each step of the copy.
  EXPECT_LT(responses.size(), 100u);
}

TEST_F(AdministrationServiceTest, RefusedBackupReturnsTheReason) {
  grpc::Status status;
  BackUp("taken", status);
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(BackUp("taken", status).empty());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(AdministrationServiceTest, ClientThatLeavesDelaysNoOtherBackup) {
  grpc::ClientContext context;
  v1::BackUpRequest request;
  request.set_name("left");
  const auto reader = stub_->BackUp(&context, request);
  context.TryCancel();
  reader->Finish();
  grpc::Status status;
  // Refused while the first still ends.
  EXPECT_TRUE(TestServer::Await([&] {
    BackUp("other", status);
    return status.error_code() != grpc::StatusCode::ABORTED;
  }));
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(AdministrationServiceTest, ReportsDiskUse) {
  server_.PutModel(server_.AddExperiment("grid", 1) + "/trials/t0", 10, "twelve bytes");
  grpc::Status status;
  BackUp("b", status);
  grpc::ClientContext context;
  v1::Storage answer;
  ASSERT_TRUE(stub_->GetStorage(&context, v1::GetStorageRequest(), &answer).ok());
  EXPECT_GT(answer.database_bytes(), 0);
  EXPECT_EQ(answer.artifacts(), 1);
  ASSERT_EQ(answer.backups_size(), 1);
  EXPECT_EQ(answer.backups(0).name(), "b");
}

TEST_F(AdministrationServiceTest, ReportsVersionAndClock) {
  const auto seconds = [](const google::protobuf::Timestamp& time) {
    return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
  };
  const double before = absl::ToUnixMicros(absl::Now()) / 1e6;
  v1::Server answer;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->GetServer(&context, v1::GetServerRequest(), &answer).ok());
  const double after = absl::ToUnixMicros(absl::Now()) / 1e6;
  EXPECT_EQ(answer.program_version(), platform::kVersion);
  EXPECT_EQ(answer.worker_api_version(), platform::kWorkerApiVersion);
  // The server's clock is this machine's, and it answered between request and response.
  EXPECT_GE(seconds(answer.time()), before - 1e-3);
  EXPECT_LE(seconds(answer.time()), after + 1e-3);
  EXPECT_LE(seconds(answer.start_time()), before);
  EXPECT_GT(seconds(answer.start_time()), before - 60);
}

}  // namespace
}  // namespace lengthwise::server
