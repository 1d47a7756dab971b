// The turns of streams, and clients on live connections that read nothing of a large answer.
#include "server/api/push_stream.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "proto/administration_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Streams that begin and end without a call, on one thread. The pool runs a client's streams in the
// order of their turns, and clients in an order of its own.
class TransferThreadsTest : public testing::Test {
 protected:
  void Begin(TransferThreads& threads, const std::string& client) {
    clients_.insert(client);
    threads.Begin(client, [this, client] { begun_.push_back(client); });
  }
  // The clients whose streams have begun, in this order.
  std::vector<std::string> Begun(TransferThreads& threads) {
    // A client's tasks run in their order, so these run after all streams that have begun.
    for (const std::string& client : clients_) {
      std::promise<void> reached;
      threads.pool.Submit(client, [&] { reached.set_value(); });
      reached.get_future().wait();
    }
    return begun_;
  }

 private:
  std::set<std::string> clients_;
  std::vector<std::string> begun_;
};

TEST_F(TransferThreadsTest, StreamBeyondTheTotalWaitsForAnEnd) {
  TransferThreads threads(1, absl::InfiniteDuration(), absl::Hours(1), /*streams=*/3);
  for (const char* client : {"ada", "bob", "cleo", "dora"}) Begin(threads, client);
  EXPECT_THAT(Begun(threads), ElementsAre("ada", "bob", "cleo"));
  threads.End("bob");
  EXPECT_THAT(Begun(threads), ElementsAre("ada", "bob", "cleo", "dora"));
}

TEST_F(TransferThreadsTest, ClientWithTheFewestStreamsIsNext) {
  TransferThreads threads(1, absl::InfiniteDuration(), absl::Hours(1), /*streams=*/3);
  for (int i = 0; i < 5; ++i) Begin(threads, "ada");
  for (int i = 0; i < 2; ++i) Begin(threads, "bob");
  EXPECT_THAT(Begun(threads), ElementsAre("ada", "ada", "ada"));
  threads.End("ada");
  EXPECT_THAT(Begun(threads), ElementsAre("ada", "ada", "ada", "bob"));
  threads.End("bob");
  EXPECT_THAT(Begun(threads), ElementsAre("ada", "ada", "ada", "bob", "bob"));
  threads.End("bob");
  EXPECT_THAT(Begun(threads), ElementsAre("ada", "ada", "ada", "bob", "bob", "ada"))
      << "no other client waits";
}

TEST_F(TransferThreadsTest, ClientHasAtMost16Streams) {
  TransferThreads threads(1, absl::InfiniteDuration(), absl::Hours(1));
  for (int i = 0; i < 17; ++i) Begin(threads, "ada");
  Begin(threads, "bob");
  const std::vector<std::string> begun = Begun(threads);
  EXPECT_EQ(std::count(begun.begin(), begun.end(), "ada"), 16);
  EXPECT_EQ(std::count(begun.begin(), begun.end(), "bob"), 1) << "there is room for other clients";
  threads.End("bob");
  EXPECT_THAT(Begun(threads), SizeIs(17)) << "the limit holds whoever ends";
  threads.End("ada");
  EXPECT_THAT(Begun(threads), SizeIs(18));
  EXPECT_EQ(Begun(threads).back(), "ada");
}

TEST_F(TransferThreadsTest, AllClientsHaveAtMost512Streams) {
  TransferThreads threads(1, absl::InfiniteDuration(), absl::Hours(1));
  for (int client = 0; client < 33; ++client) {
    for (int i = 0; i < 16; ++i) Begin(threads, absl::StrCat(client));
  }
  EXPECT_THAT(Begun(threads), SizeIs(512));
  for (int i = 0; i < 16; ++i) threads.End("0");
  EXPECT_THAT(Begun(threads), SizeIs(528));
}

TEST(PushStreamTest, ClientHasAMinuteByDefault) {
  EXPECT_EQ(RpcServer::Options().transfer_patience, absl::Minutes(1));
}

// Far more than a connection buffers.
constexpr int64_t kModelBytes = 8 << 20;

void StartServer(RpcServer::Options options, TestServer& server) {
  EXPECT_EQ(server.AddExperiment("grid", 1) + "/trials/t0", kTrial);
  server.PutModel(kTrial, 100, std::string(kModelBytes, 'x'));
  server.Serve(std::move(options));
}

// A new connection. Its windows do not grow, as gRPC's do on a slow machine until a whole model
// fits into them.
std::shared_ptr<grpc::Channel> ConnectTo(TestServer& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(server.rpc().address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

// A download with a deadline that only a hanging server reaches.
class Download {
 public:
  explicit Download(TestServer& server) : Download(ConnectTo(server)) {}
  explicit Download(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::ExperimentService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
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

// Number of threads of this process, which is both server and client.
int64_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST(PushStreamTest, UnreadStreamsHoldNoThread) {
  TestServer server;
  RpcServer::Options options;
  options.transfer_threads = 1;
  options.transfer_patience = absl::Hours(1);
  StartServer(std::move(options), server);
  const int64_t before = Threads();
  std::vector<std::unique_ptr<Download>> unread;
  // As many as the budget of unread answers allows: each holds a part of 1 MiB, twice.
  for (int client = 0; client < 6; ++client) {
    const std::shared_ptr<grpc::Channel> connection = ConnectTo(server);
    for (int i = 0; i < TransferThreads::kStreamsOfAClient; ++i) {
      unread.push_back(std::make_unique<Download>(connection));
      ASSERT_TRUE(unread.back()->ReadOne()) << unread.back()->ReadToEnd().error_message();
    }
  }
  // The only thread is busy with none of them, so this download does not wait.
  Download other(server);
  EXPECT_TRUE(other.ReadToEnd().ok());
  EXPECT_EQ(other.bytes(), kModelBytes);
  // gRPC has a few more threads for more connections.
  EXPECT_LT(Threads() - before, std::ssize(unread) / 2);
  for (const auto& download : unread) download->Cancel();
}

TEST(PushStreamTest, UnreadStreamsDelayNoUpload) {
  TestServer server;
  RpcServer::Options options;
  const int viewers = options.transfer_threads;
  options.transfer_patience = absl::Hours(1);
  StartServer(std::move(options), server);
  std::vector<std::unique_ptr<Download>> downloads;
  for (int i = 0; i < viewers; ++i) {
    downloads.push_back(std::make_unique<Download>(server));
    ASSERT_TRUE(downloads.back()->ReadOne());  // it has begun
  }

  const auto worker = v1::WorkerService::NewStub(server.Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::UploadArtifactResponse response;
  const auto upload = worker->UploadArtifact(&context, &response);
  v1::UploadArtifactRequest header;
  header.mutable_header()->set_lease_id(server.LeaseOf(kTrial).lease_id());
  header.mutable_header()->set_fencing_token(server.LeaseOf(kTrial).fencing_token());
  header.mutable_header()->set_trial(kTrial);
  header.mutable_header()->set_sha256(platform::Sha256Hex(std::string(1 << 20, 'x')));
  header.mutable_header()->set_size_bytes(1 << 20);
  EXPECT_TRUE(upload->Write(header));
  v1::UploadArtifactRequest data;
  data.set_data(std::string(1 << 20, 'x'));
  EXPECT_TRUE(upload->Write(data));
  upload->WritesDone();
  const grpc::Status status = upload->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(server.FinishedArtifacts(), 2) << "beside the model";
  for (const auto& download : downloads) download->Cancel();
}

TEST(PushStreamTest, UnreadStreamsDelayNoOtherClient) {
  TestServer server;
  RpcServer::Options options;
  options.transfer_threads = 1;
  options.transfer_patience = absl::Hours(1);
  StartServer(std::move(options), server);
  const std::shared_ptr<grpc::Channel> connection = ConnectTo(server);
  std::vector<std::unique_ptr<Download>> unread;
  for (int i = 0; i < 64; ++i) {
    unread.push_back(std::make_unique<Download>(connection));
    if (i >= TransferThreads::kStreamsOfAClient) continue;
    ASSERT_TRUE(unread[i]->ReadOne());  // it has begun; the others wait for their turn
  }

  Download other(server);
  const grpc::Status status = other.ReadToEnd();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(other.bytes(), kModelBytes);

  const auto administration = v1::AdministrationService::NewStub(server.Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::Storage storage;
  EXPECT_TRUE(administration->GetStorage(&context, {}, &storage).ok());
  grpc::ClientContext backup_context;
  backup_context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto backup = administration->BackUp(&backup_context, {});
  v1::BackUpResponse told;
  while (backup->Read(&told)) {
  }
  EXPECT_TRUE(backup->Finish().ok());
  EXPECT_TRUE(told.complete());
  for (const auto& download : unread) download->Cancel();
}

// The worker of a private server stores the checkpoints of all its packs, and its user downloads
// models at the same time.
TEST(PushStreamTest, SocketsClientsDoNotWaitForEachOther) {
  TestServer server;
  RpcServer::Options options;
  options.socket = absl::StrCat("/tmp/push_stream_test.", getpid());
  options.transfer_patience = absl::Hours(1);
  StartServer(std::move(options), server);
  std::vector<std::unique_ptr<Download>> unread;
  for (int i = 0; i < 2 * TransferThreads::kStreamsOfAClient; ++i) {
    unread.push_back(std::make_unique<Download>(server));
    ASSERT_TRUE(unread.back()->ReadOne()) << unread.back()->ReadToEnd().error_message();
  }
  for (const auto& download : unread) download->Cancel();
}

TEST(PushStreamTest, ClientThatReadsNothingMakesRoom) {
  TestServer server;
  RpcServer::Options options;
  options.transfer_threads = 1;
  options.transfer_patience = absl::Seconds(5);
  StartServer(std::move(options), server);
  const std::shared_ptr<grpc::Channel> connection = ConnectTo(server);
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
    EXPECT_THAT(end.error_message(), HasSubstr("the client read nothing of the answer for 5s"));
    EXPECT_LT(each->bytes(), kModelBytes);
    ++given_up;
  }
  EXPECT_GE(given_up, 1);
}

}  // namespace
}  // namespace lengthwise::server
