// Open streams whose token is revoked or expires, over a real connection.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"
#include "server/security/testing/test_issuer.h"
#include "server/security/token_store.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

class OpenStreamsTest : public testing::Test {
 protected:
  OpenStreamsTest() {
    const std::string directory =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    keys_ = directory + "/keys.json";
    tokens_ = TokenStore::Open(directory, [this] { return Now(); }).value();
    EXPECT_EQ(server_.AddExperiment("grid", 1), kExperiment);
    RpcServer::Options options;
    options.tokens = tokens_.get();
    options.recheck_interval = absl::Milliseconds(5);
    server_.Serve(std::move(options));
    const auto channel = server_.Connect();
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

  absl::Time Now() const {
    return absl::FromUnixSeconds(1'700'000'000) + absl::Minutes(minutes_.load());
  }
  // Accepts an identity provider's tokens from now on. Returns one of sam's.
  std::string ProvidersToken() {
    const TestKey key = TestKey::Curve("key");
    WriteTestKeys(keys_, {key.Public()});
    tokens_->Accept(OpenTestTokens(keys_, [this] { return Now(); }));
    return key.Sign("ES256", TestClaims("sam", "viewer", Now() + absl::Minutes(10)));
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
  // A watcher that is caught up.
  Watch Open(const std::string& token) {
    v1::WatchExperimentRequest request;
    request.set_name(kExperiment);
    Watch watch;
    watch.context = With(token);
    watch.reader = experiments_->WatchExperiment(watch.context.get(), request);
    while (!watch.response.caught_up() && watch.Read()) {
    }
    EXPECT_TRUE(watch.response.caught_up());
    return watch;
  }

  void Revoke(const v1::CreateTokenResponse& created) {
    v1::RevokeTokenRequest request;
    request.set_token_id(created.token().token_id());
    ASSERT_TRUE(tokens_->Revoke(request).ok());
  }

  // A lease of another experiment, for the worker with ada's token.
  v1::Lease LeaseOfAda() {
    server_.calls().SetPrincipal("ada");
    server_.calls().Create("more", 1, 1);
    EXPECT_EQ(server_.calls().Register("hers"), absl::OkStatus());
    return server_.calls().Acquire("hers");
  }
  static v1::StreamEventsRequest FirstLine(const v1::Lease& lease) {
    v1::StreamEventsRequest request;
    request.set_lease_id(lease.lease_id());
    request.set_fencing_token(lease.fencing_token());
    v1::Event& event = *request.add_events();
    event.set_trial(lease.trials(0).trial());
    event.set_attempt(lease.trials(0).attempt());
    event.set_sequence(1);
    event.mutable_log_line()->set_text("first");
    return request;
  }

  std::atomic<int64_t> minutes_ = 0;
  std::string keys_;
  std::unique_ptr<TokenStore> tokens_;
  TestServer server_;
  std::unique_ptr<v1::ExperimentService::Stub> experiments_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

TEST_F(OpenStreamsTest, RevocationEndsOnlyItsTokensStreams) {
  const v1::CreateTokenResponse token = Token(v1::VIEWER);
  Watch revoked = Open(token.text());
  Watch other = Open(Token(v1::VIEWER).text());
  Revoke(token);
  const grpc::Status status = revoked.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr(token.token().token_id() + ", or it was revoked"));

  v1::Event event;
  event.set_trial(kTrial);
  event.mutable_log_line()->set_text("still there");
  server_.Append(event);
  ASSERT_TRUE(other.Read());
  EXPECT_EQ(other.response.events(0).log_line().text(), "still there");
  other.context->TryCancel();
}

TEST_F(OpenStreamsTest, ExpiryEndsAWatch) {
  Watch watch = Open(Token(v1::VIEWER, absl::Minutes(10)).text());
  Watch longer = Open(Token(v1::VIEWER, absl::Minutes(20)).text());
  minutes_ = 10;
  const grpc::Status status = watch.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("of ada expired at 2023-11-14T22:23:20"));
  minutes_ = 20;
  EXPECT_EQ(longer.End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(OpenStreamsTest, RevocationEndsAWorkersStream) {
  const v1::CreateTokenResponse token = Token(v1::WORKER);
  const v1::Lease lease = LeaseOfAda();
  const auto context = With(token.text());
  const auto stream = workers_->StreamEvents(context.get());
  const v1::StreamEventsRequest request = FirstLine(lease);
  v1::StreamEventsResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.acknowledged_sequence(), 1);
  Revoke(token);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(OpenStreamsTest, RevocationEndsAnUpload) {
  const v1::CreateTokenResponse token = Token(v1::WORKER);
  const auto context = With(token.text());
  v1::UploadArtifactResponse response;
  const auto stream = workers_->UploadArtifact(context.get(), &response);
  v1::UploadArtifactRequest request;
  const v1::Lease lease = LeaseOfAda();
  request.mutable_header()->set_trial(lease.trials(0).trial());
  request.mutable_header()->set_lease_id(lease.lease_id());
  request.mutable_header()->set_fencing_token(lease.fencing_token());
  request.mutable_header()->set_sha256(std::string(64, 'a'));
  request.mutable_header()->set_size_bytes(10);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(TestServer::Await([this] { return server_.UnfinishedArtifacts() == 1; }));
  Revoke(token);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(TestServer::Await([this] { return server_.UnfinishedArtifacts() == 0; }));
}

TEST_F(OpenStreamsTest, FirstTokenEndsAnonymousStreams) {
  Watch watch = Open("");
  Token(v1::ADMIN);
  const grpc::Status status = watch.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("asks for a token"));
}

TEST_F(OpenStreamsTest, ProvidersTokenEndsItsWatchAtExp) {
  Watch watch = Open(ProvidersToken());
  minutes_ = 10;
  const grpc::Status status = watch.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("of sam expired at 2023-11-14T22:23:20"));
}

TEST_F(OpenStreamsTest, RevocationEndsTheWatchOfAProvidersSubject) {
  const std::string token = ProvidersToken();
  Watch watch = Open(token);
  Watch other = Open(Token(v1::VIEWER).text());
  v1::RevokeTokenRequest request;
  request.set_principal("sam");
  ASSERT_TRUE(tokens_->Revoke(request).ok());
  const grpc::Status status = watch.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("revoked all tokens of sam"));
  // A new connection, which the edge refuses.
  v1::GetExperimentRequest get;
  get.set_name(kExperiment);
  v1::Experiment experiment;
  const auto stub = v1::ExperimentService::NewStub(server_.Connect());
  EXPECT_EQ(stub->GetExperiment(With(token).get(), get, &experiment).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  other.context->TryCancel();
}

}  // namespace
}  // namespace lengthwise::server
