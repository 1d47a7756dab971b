#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/access_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "rpc/status.h"
#include "rpc/token.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"
#include "server/security/token_store.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AccessServiceTest : public testing::Test {
 protected:
  AccessServiceTest()
      : directory_(testing::TempDir() + "/" +
                   testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    tokens_ = TokenStore::Open(directory_).value();
    EXPECT_EQ(server_.AddExperiment("of-ada", 2, "ada"), "experiments/of-ada-1");
  }

  void Start(const Gate::Options& gate = {}) {
    RpcServer::Options options;
    options.gate = gate;
    options.tokens = tokens_.get();
    server_.Serve(std::move(options));
    const auto channel = server_.Connect();
    access_ = v1::AccessService::NewStub(channel);
    experiments_ = v1::ExperimentService::NewStub(channel);
  }

  std::string Token(const std::string& principal, v1::Role role) {
    v1::CreateTokenRequest request;
    request.set_principal(principal);
    request.set_role(role);
    return tokens_->Create(request).value().text();
  }

  // The context of a call with a token.
  static std::unique_ptr<grpc::ClientContext> With(const std::string& token) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    return context;
  }

  grpc::Status Create(const std::string& token, const std::string& owner = "") {
    v1::CreateExperimentRequest request;
    request.mutable_specification()->set_name("e");
    request.set_owner(owner);
    v1::CreateExperimentResponse response;
    return experiments_->CreateExperiment(With(token).get(), request, &response);
  }
  grpc::Status Cancel(const std::string& token, const std::string& name,
                      const std::string& reason = "") {
    v1::CancelExperimentRequest request;
    request.set_name(name);
    request.set_reason(reason);
    v1::Experiment response;
    return experiments_->CancelExperiment(With(token).get(), request, &response);
  }

  const std::string directory_;
  std::unique_ptr<TokenStore> tokens_;
  TestServer server_;
  std::unique_ptr<v1::AccessService::Stub> access_;
  std::unique_ptr<v1::ExperimentService::Stub> experiments_;
};

TEST_F(AccessServiceTest, AdministratorsManageTokens) {
  Start();
  const std::string admin = Token("root", v1::ADMIN);
  v1::CreateTokenRequest create;
  create.set_principal("grace");
  create.set_role(v1::SUBMITTER);
  create.mutable_lifetime()->set_seconds(3600);
  v1::CreateTokenResponse created;
  ASSERT_TRUE(access_->CreateToken(With(admin).get(), create, &created).ok());
  EXPECT_TRUE(rpc::ParseTokenText(created.text()).ok());

  v1::Caller caller;
  ASSERT_TRUE(access_->GetCaller(With(created.text()).get(), {}, &caller).ok());
  EXPECT_EQ(caller.principal(), "grace");
  EXPECT_EQ(caller.role(), v1::SUBMITTER);
  EXPECT_EQ(caller.expire_time().seconds(), created.token().expire_time().seconds());

  v1::ListTokensResponse list;
  ASSERT_TRUE(access_->ListTokens(With(admin).get(), {}, &list).ok());
  ASSERT_EQ(list.tokens_size(), 2);
  EXPECT_EQ(list.tokens(0).principal(), "grace");
  EXPECT_EQ(list.tokens(0).maker(), "root");
  EXPECT_EQ(list.tokens(1).maker(), "") << "made on the server's machine";

  v1::RevokeTokenRequest revoke;
  revoke.set_token_id(created.token().token_id());
  v1::RevokeTokenResponse revoked;
  EXPECT_TRUE(access_->RevokeToken(With(admin).get(), revoke, &revoked).ok());
  const grpc::Status status = access_->GetCaller(With(created.text()).get(), {}, &caller);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("was revoked"));
  EXPECT_EQ(access_->RevokeToken(With(admin).get(), revoke, &revoked).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(AccessServiceTest, OpenServerCreatesNoFirstToken) {
  Start();
  v1::Caller caller;
  ASSERT_TRUE(access_->GetCaller(With("").get(), {}, &caller).ok());
  EXPECT_EQ(caller.principal(), "anonymous");
  EXPECT_FALSE(caller.has_expire_time());
  v1::CreateTokenRequest create;
  create.set_principal("eve");
  create.set_role(v1::ADMIN);
  v1::CreateTokenResponse created;
  const grpc::Status status = access_->CreateToken(With("").get(), create, &created);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("--create_admin_token"));
  EXPECT_FALSE(tokens_->IsRequired());
}

TEST_F(AccessServiceTest, SubmitterIsTheOwner) {
  Start();
  const std::string ada = Token("ada", v1::SUBMITTER);
  EXPECT_TRUE(Create(ada).ok());
  EXPECT_TRUE(Create(ada, "ada").ok());
  const grpc::Status status = Create(ada, "grace");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("cannot submit for grace"));
  v1::EvaluateTrialRequest evaluate;
  evaluate.set_trial("experiments/of-ada-1/trials/t0");
  server_.EndTrial(evaluate.trial(), v1::SUCCEEDED);
  v1::CreateExperimentResponse response;
  EXPECT_TRUE(
      experiments_->EvaluateTrial(With(Token("grace", v1::SUBMITTER)).get(), evaluate, &response)
          .ok());
  std::vector<std::string> owners;
  const auto all = server_.core().reads().ListExperiments({}).value();
  for (const v1::Experiment& experiment : all.experiments()) owners.push_back(experiment.owner());
  EXPECT_THAT(owners, ElementsAre("grace", "ada", "ada", "ada")) << "the newest first";
}

TEST_F(AccessServiceTest, OnlyOwnersAndAdministratorsChangeExperiments) {
  Start();
  const std::string grace = Token("grace", v1::SUBMITTER);
  const auto denied = [&](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("is ada's"));
  };
  denied(Cancel(grace, "experiments/of-ada-1"));
  v1::DeleteExperimentRequest remove;
  remove.set_name("experiments/of-ada-1");
  v1::DeleteExperimentResponse removed;
  denied(experiments_->DeleteExperiment(With(grace).get(), remove, &removed));
  v1::ExtendExperimentRequest extend;
  extend.set_name("experiments/of-ada-1");
  extend.add_seeds(7);
  v1::ExtendExperimentResponse extended;
  denied(experiments_->ExtendExperiment(With(grace).get(), extend, &extended));
  v1::RetryTrialsRequest retry;
  retry.set_name("experiments/of-ada-1");
  retry.add_states(v1::FAILED);
  v1::RetryTrialsResponse retried;
  denied(experiments_->RetryTrials(With(grace).get(), retry, &retried));
  v1::CancelTrialRequest cancel;
  cancel.set_name("experiments/of-ada-1/trials/t0");
  v1::Trial trial;
  denied(experiments_->CancelTrial(With(grace).get(), cancel, &trial));
  const auto running = [&] {
    return server_.core().reads().GetExperiment("experiments/of-ada-1")->trials().running();
  };
  EXPECT_EQ(running(), 2);

  EXPECT_TRUE(Cancel(Token("ada", v1::SUBMITTER), "experiments/of-ada-1").ok());
  EXPECT_EQ(running(), 0);
  const std::string other = server_.AddExperiment("of-ada", 1, "ada");
  EXPECT_TRUE(Cancel(Token("root", v1::ADMIN), other, "too long").ok());
  std::vector<std::string> cancellers;
  for (const std::string& name : {std::string("experiments/of-ada-1"), other}) {
    cancellers.push_back(server_.calls().History(name).back().state_change().actor());
  }
  EXPECT_THAT(cancellers, ElementsAre("user ada", "user root"));
  EXPECT_EQ(Cancel(grace, "experiments/none-1").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Cancel(grace, "../etc").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AccessServiceTest, ExcessCallsAreToldWhenToRetry) {
  Start({.quotas = {.calls_per_second = 0.5, .burst = 3}});
  const std::string ada = Token("ada", v1::VIEWER);
  v1::Caller caller;
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(access_->GetCaller(With(ada).get(), {}, &caller).ok());
  }
  const absl::Status status = rpc::FromGrpcStatus(access_->GetCaller(With(ada).get(), {}, &caller));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(rpc::RetryDelay(status), absl::Seconds(1));
  EXPECT_LE(rpc::RetryDelay(status), absl::Seconds(2));
  EXPECT_TRUE(access_->GetCaller(With(Token("grace", v1::VIEWER)).get(), {}, &caller).ok());
}

TEST_F(AccessServiceTest, StreamCountsWhileOpen) {
  Start({.quotas = {.streams = 1}});
  const std::string ada = Token("ada", v1::VIEWER);
  v1::WatchExperimentRequest watch;
  watch.set_name("experiments/of-ada-1");
  const auto first_context = With(ada);
  const auto first = experiments_->WatchExperiment(first_context.get(), watch);
  v1::WatchExperimentResponse response;
  ASSERT_TRUE(first->Read(&response));  // caught_up: the stream is open

  const auto second_context = With(ada);
  const auto second = experiments_->WatchExperiment(second_context.get(), watch);
  EXPECT_FALSE(second->Read(&response));
  EXPECT_EQ(second->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

  first_context->TryCancel();
  first->Finish();
  ASSERT_TRUE(TestServer::Await([&] { return server_.core().event_log().subscriptions() == 0; }));
  // The quota is freed when the call's reactor ends, a moment after the subscription.
  bool reopened = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!reopened && std::chrono::steady_clock::now() < deadline) {
    const auto context = With(ada);
    const auto stream = experiments_->WatchExperiment(context.get(), watch);
    reopened = stream->Read(&response);
    context->TryCancel();
    stream->Finish();
  }
  EXPECT_TRUE(reopened);
}

TEST_F(AccessServiceTest, RequestOverTwoMebibytesIsRefused) {
  Start();
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_description(std::string(2 << 20, 'x'));
  v1::CreateExperimentResponse response;
  const std::string ada = Token("ada", v1::SUBMITTER);
  const grpc::Status status = experiments_->CreateExperiment(With(ada).get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("accepted: at most 2097152"));
  EXPECT_EQ(server_.core().reads().ListExperiments({})->experiments_size(), 1);
}

// A client that does not read the answer keeps the request, too.
TEST_F(AccessServiceTest, UsersRequestThatCountsNowhereIsSmall) {
  Start();
  const std::string ada = Token("ada", v1::VIEWER);
  for (const size_t bytes : {size_t{1}, kMostUncountedBytes}) {
    const auto expected = bytes == 1 ? grpc::StatusCode::OK : grpc::StatusCode::RESOURCE_EXHAUSTED;
    v1::GetCallerRequest request;
    request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
        100, std::string(bytes, 'x'));
    v1::Caller caller;
    EXPECT_EQ(access_->GetCaller(With(ada).get(), request, &caller).error_code(), expected);

    v1::WatchExperimentRequest watch;
    watch.set_name("experiments/of-ada-1");
    watch.GetReflection()->MutableUnknownFields(&watch)->AddLengthDelimited(
        100, std::string(bytes, 'x'));
    const auto context = With(ada);
    const auto stream = experiments_->WatchExperiment(context.get(), watch);
    v1::WatchExperimentResponse response;
    EXPECT_EQ(stream->Read(&response), expected == grpc::StatusCode::OK);
    if (bytes == 1) context->TryCancel();
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), bytes == 1 ? grpc::StatusCode::CANCELLED : expected)
        << status.error_message();
  }
}

}  // namespace
}  // namespace lengthwise::server
