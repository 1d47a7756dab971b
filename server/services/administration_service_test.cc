// AdministrationService over a real connection.
#include "server/services/administration_service.h"

#include <chrono>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/version.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

class AdministrationServiceTest : public ::testing::Test {
 protected:
  AdministrationServiceTest()
      : server_(RpcServer::Start({}, coordinator_).value()),
        stub_(v1::AdministrationService::NewStub(
            grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()))) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  }

  FakeCoordinator coordinator_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::AdministrationService::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(AdministrationServiceTest, StreamsABackupsProgressAndAlwaysItsEnd) {
  std::vector<v1::BackUpResponse> told(1000);
  for (size_t i = 0; i < told.size(); ++i) told[i].set_copied_bytes(static_cast<int64_t>(i));
  told.back().set_complete(true);
  told.back().set_path("/data/backups/b");
  coordinator_.set_backup(told);
  const auto reader = stub_->BackUp(&context_, v1::BackUpRequest());
  std::vector<v1::BackUpResponse> responses;
  for (v1::BackUpResponse response; reader->Read(&response);) responses.push_back(response);
  EXPECT_TRUE(reader->Finish().ok());
  ASSERT_FALSE(responses.empty());
  EXPECT_TRUE(responses.back().complete());
  EXPECT_EQ(responses.back().path(), "/data/backups/b");
  // What a person can follow, and not each of a thousand pages.
  EXPECT_LT(responses.size(), 100u);
}

TEST_F(AdministrationServiceTest, ARefusedBackupSaysWhy) {
  v1::BackUpRequest request;
  request.set_name("taken");
  const auto reader = stub_->BackUp(&context_, request);
  v1::BackUpResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(AdministrationServiceTest, TellsWhatIsOnTheDisk) {
  v1::Storage storage;
  storage.set_database_bytes(17);
  storage.add_backups()->set_name("b");
  coordinator_.set_storage(storage);
  v1::Storage answer;
  ASSERT_TRUE(stub_->GetStorage(&context_, v1::GetStorageRequest(), &answer).ok());
  EXPECT_EQ(answer.SerializeAsString(), storage.SerializeAsString());
}

TEST_F(AdministrationServiceTest, SaysWhichProgramServesAndByWhatClock) {
  const auto seconds = [](const google::protobuf::Timestamp& time) {
    return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
  };
  const double before = absl::ToUnixMicros(absl::Now()) / 1e6;
  v1::Server answer;
  ASSERT_TRUE(stub_->GetServer(&context_, v1::GetServerRequest(), &answer).ok());
  const double after = absl::ToUnixMicros(absl::Now()) / 1e6;
  EXPECT_EQ(answer.program_version(), platform::kVersion);
  EXPECT_EQ(answer.worker_api_version(), platform::kWorkerApiVersion);
  // The clock of the server is this machine's: it answered between the question and the answer.
  EXPECT_GE(seconds(answer.time()), before - 1e-3);
  EXPECT_LE(seconds(answer.time()), after + 1e-3);
  EXPECT_LE(seconds(answer.start_time()), before);
  EXPECT_GT(seconds(answer.start_time()), before - 60);
}

}  // namespace
}  // namespace lengthwise::server
