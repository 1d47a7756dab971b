// Clients that read nothing of a large answer, though their connections live.
#include "server/services/push_stream.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

constexpr char kTrial[] = "experiments/grid-1/trials/t0";
// Far beyond what a connection buffers.
constexpr int64_t kModelBytes = 8 << 20;

std::unique_ptr<RpcServer> Start(RpcServer::Options options, FakeCoordinator& coordinator) {
  coordinator.AddExperiment("experiments/grid-1", 1);
  coordinator.PutModel(kTrial, 100, std::string(kModelBytes, 'x'));
  return RpcServer::Start(std::move(options), coordinator).value();
}

// On a connection of its own, as another machine has one.
std::shared_ptr<grpc::Channel> Connect(const RpcServer& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server.address(), grpc::InsecureChannelCredentials(), arguments);
}

// A download with a deadline that only a hanging server meets.
class Download {
 public:
  explicit Download(const RpcServer& server) : Download(Connect(server)) {}
  explicit Download(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::ExperimentService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::DownloadModelRequest request;
    request.set_name(kTrial);
    reader_ = stub_->DownloadModel(&context_, request);
  }
  bool ReadOne() {
    v1::DownloadModelResponse response;
    if (!reader_->Read(&response)) return false;
    bytes_ += static_cast<int64_t>(response.data().size());
    return true;
  }
  grpc::Status ReadToEnd() {
    while (ReadOne()) {
    }
    return reader_->Finish();
  }
  int64_t bytes() const { return bytes_; }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::ExperimentService::Stub> stub_;
  std::unique_ptr<grpc::ClientReader<v1::DownloadModelResponse>> reader_;
  int64_t bytes_ = 0;
};

TEST(PushStreamTest, CheckpointsComeInWhileEveryThreadForPeopleWaitsForOneWhoReadsNothing) {
  FakeCoordinator coordinator;
  RpcServer::Options options;
  const int viewers = options.transfer_threads;
  options.transfer_patience = absl::Hours(1);
  const std::unique_ptr<RpcServer> server = Start(std::move(options), coordinator);
  std::vector<std::unique_ptr<Download>> downloads;
  for (int i = 0; i < viewers; ++i) {
    downloads.push_back(std::make_unique<Download>(*server));
    ASSERT_TRUE(downloads.back()->ReadOne());  // a thread is at it
  }

  const auto worker = v1::WorkerService::NewStub(Connect(*server));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::UploadArtifactResponse response;
  const auto upload = worker->UploadArtifact(&context, &response);
  v1::UploadArtifactRequest header;
  header.mutable_header()->set_fencing_token(1);
  header.mutable_header()->set_trial(kTrial);
  header.mutable_header()->set_sha256(std::string(64, 'a'));
  header.mutable_header()->set_size_bytes(1 << 20);
  EXPECT_TRUE(upload->Write(header));
  v1::UploadArtifactRequest data;
  data.set_data(std::string(1 << 20, 'x'));
  EXPECT_TRUE(upload->Write(data));
  upload->WritesDone();
  const grpc::Status status = upload->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(coordinator.artifacts().size(), 1u);
  for (const auto& download : downloads) download->Cancel();
}

TEST(PushStreamTest, UnreadStreamsOfOneClientHoldUpNoOther) {
  FakeCoordinator coordinator;
  RpcServer::Options options;
  options.transfer_threads = 2;
  options.transfer_patience = absl::Hours(1);
  const std::unique_ptr<RpcServer> server = Start(std::move(options), coordinator);
  const std::shared_ptr<grpc::Channel> connection = Connect(*server);
  std::vector<std::unique_ptr<Download>> unread;
  for (int i = 0; i < 64; ++i) unread.push_back(std::make_unique<Download>(connection));
  for (int i = 0; i < TransferThreads::kStreamsOfAClient; ++i) {
    ASSERT_TRUE(unread[i]->ReadOne());  // it runs
  }

  Download other(Connect(*server));
  const grpc::Status status = other.ReadToEnd();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(other.bytes(), kModelBytes);

  const auto administration = v1::AdministrationService::NewStub(Connect(*server));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::Storage storage;
  EXPECT_TRUE(administration->GetStorage(&context, {}, &storage).ok());
  for (const auto& download : unread) download->Cancel();
}

TEST(PushStreamTest, OneWhoReadsNothingIsGivenUpAndTheNextIsServed) {
  FakeCoordinator coordinator;
  RpcServer::Options options;
  options.transfer_threads = 1;
  options.transfer_patience = absl::Seconds(1);
  const std::unique_ptr<RpcServer> server = Start(std::move(options), coordinator);
  const std::shared_ptr<grpc::Channel> connection = Connect(*server);
  std::vector<std::unique_ptr<Download>> stalled;
  for (int i = 0; i < TransferThreads::kStreamsOfAClient; ++i) {
    stalled.push_back(std::make_unique<Download>(connection));
    ASSERT_TRUE(stalled.back()->ReadOne());
  }

  // Its turn comes when one of them is given up.
  Download next(connection);
  const grpc::Status status = next.ReadToEnd();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(next.bytes(), kModelBytes);

  int given_up = 0;
  for (const auto& each : stalled) {
    const grpc::Status end = each->ReadToEnd();
    if (end.ok()) continue;
    EXPECT_EQ(end.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_THAT(end.error_message(), HasSubstr("nothing of the answer was taken for 1s"));
    EXPECT_LT(each->bytes(), kModelBytes);
    ++given_up;
  }
  EXPECT_GE(given_up, 1);
}

}  // namespace
}  // namespace lengthwise::server
