// Streams whose token is taken away while they are open, over a real connection.
#include "server/services/stream_guard.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/access/token_store.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

constexpr char kExperiment[] = "experiments/grid-1";
constexpr char kTrial[] = "experiments/grid-1/trials/t0";

class StreamGuardTest : public testing::Test {
 protected:
  StreamGuardTest() {
    const std::string directory =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    tokens_ = TokenStore::Open(directory, [this] {
                return absl::FromUnixSeconds(1'700'000'000) + absl::Minutes(minutes_.load());
              }).value();
    coordinator_.AddExperiment(kExperiment, 1);
    RpcServer::Options options;
    options.tokens = tokens_.get();
    options.recheck_interval = absl::Milliseconds(5);
    server_ = RpcServer::Start(std::move(options), coordinator_).value();
    const auto channel =
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    experiments_ = v1::ExperimentService::NewStub(channel);
    workers_ = v1::WorkerService::NewStub(channel);
  }

  v1::CreateTokenResponse Token(v1::Role role, absl::Duration lifetime = absl::Hours(1)) {
    v1::CreateTokenRequest request;
    request.set_principal("ada");
    request.set_role(role);
    request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(lifetime));
    return tokens_->Create(request).value();
  }

  static std::unique_ptr<grpc::ClientContext> With(const std::string& token) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    return context;
  }

  struct Watch {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReader<v1::WatchExperimentResponse>> reader;
    v1::WatchExperimentResponse response;

    bool Read() { return reader->Read(&response); }
    grpc::Status End() {
      while (Read()) {
      }
      return reader->Finish();
    }
  };
  // A watcher that has heard all there is.
  Watch Open(const std::string& token) {
    v1::WatchExperimentRequest request;
    request.set_name(kExperiment);
    Watch watch;
    watch.context = With(token);
    watch.reader = experiments_->WatchExperiment(watch.context.get(), request);
    EXPECT_TRUE(watch.Read() && watch.response.caught_up());
    return watch;
  }

  std::atomic<int64_t> minutes_ = 0;
  FakeCoordinator coordinator_;
  std::unique_ptr<TokenStore> tokens_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::ExperimentService::Stub> experiments_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

TEST_F(StreamGuardTest, AWatchersStreamEndsWhenItsTokenIsRevokedAndNoOther) {
  const v1::CreateTokenResponse token = Token(v1::VIEWER);
  Watch revoked = Open(token.text());
  Watch other = Open(Token(v1::VIEWER).text());
  ASSERT_TRUE(tokens_->Revoke(token.token().token_id()).ok());
  const grpc::Status status = revoked.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr(token.token().token_id() + ", or it was revoked"));

  v1::Event event;
  event.set_trial(kTrial);
  event.mutable_log_line()->set_text("still there");
  coordinator_.Append(event);
  ASSERT_TRUE(other.Read());
  EXPECT_EQ(other.response.events(0).log_line().text(), "still there");
  other.context->TryCancel();
}

TEST_F(StreamGuardTest, AWatchersStreamEndsWhenItsTokenExpires) {
  Watch watch = Open(Token(v1::VIEWER, absl::Minutes(10)).text());
  Watch longer = Open(Token(v1::VIEWER, absl::Minutes(20)).text());
  minutes_ = 10;
  const grpc::Status status = watch.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("of ada expired at 2023-11-14T22:23:20"));
  minutes_ = 20;
  EXPECT_EQ(longer.End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(StreamGuardTest, AWorkersEventsAreTakenUntilItsTokenIsRevoked) {
  const v1::CreateTokenResponse token = Token(v1::WORKER);
  const auto context = With(token.text());
  const auto stream = workers_->StreamEvents(context.get());
  v1::StreamEventsRequest request;
  request.add_events()->set_trial(kTrial);
  request.mutable_events(0)->set_sequence(1);
  v1::StreamEventsResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.acknowledged_sequence(), 1);
  ASSERT_TRUE(tokens_->Revoke(token.token().token_id()).ok());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(StreamGuardTest, AnUploadEndsWhenItsTokenIsRevoked) {
  const v1::CreateTokenResponse token = Token(v1::WORKER);
  const auto context = With(token.text());
  v1::UploadArtifactResponse response;
  const auto stream = workers_->UploadArtifact(context.get(), &response);
  v1::UploadArtifactRequest request;
  request.mutable_header()->set_trial(kTrial);
  request.mutable_header()->set_fencing_token(1);
  request.mutable_header()->set_sha256(std::string(64, 'a'));
  request.mutable_header()->set_size_bytes(10);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(coordinator_.WaitFor([this] { return coordinator_.open_writers() == 1; }));
  ASSERT_TRUE(tokens_->Revoke(token.token().token_id()).ok());
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(coordinator_.WaitFor([this] { return coordinator_.open_writers() == 0; }));
}

TEST_F(StreamGuardTest, WhoWatchedAServerWithoutTokensNeedsOneFromTheFirstTokenOn) {
  Watch watch = Open("");
  Token(v1::ADMIN);
  const grpc::Status status = watch.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("asks for a token"));
}

}  // namespace
}  // namespace lengthwise::server
