// A lease belongs to the principal that acquired it: every method of workers is called with another
// worker's token, the lease's id and a guessed id.
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "platform/version.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/api/open_streams.h"
#include "server/api/rpc_server.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/security/authorization.h"
#include "server/security/token_store.h"

namespace lengthwise::server {
namespace {

constexpr char kModel[] = "model";
constexpr char kService[] = "lengthwise.v1.WorkerService/";

// The credentials of a call.
struct Shown {
  std::string token;
  std::string worker;
  v1::Lease lease;
};

class LeaseOwnerTest : public testing::Test {
 protected:
  // A method and its call with given credentials, which returns the error, or an empty text if
  // accepted.
  struct Method {
    std::string name;
    std::function<std::string(const Shown&)> call;
  };

  LeaseOwnerTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    tokens_ = TokenStore::Open(coordinator_.data_dir()).value();
    RpcServer::Options options;
    options.tokens = tokens_.get();
    options.streams = streams_;
    server_ = RpcServer::Start(std::move(options), *coordinator_).value();
    stub_ = v1::WorkerService::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
    ada_ = {.token = Token("ada"), .worker = "ada-worker", .lease = {}};
    grace_ = {.token = Token("grace"), .worker = "grace-worker", .lease = {}};
    EXPECT_EQ(Call(ada_), "");
    EXPECT_EQ(Call(grace_), "");
    experiment_ = coordinator_.Create("sort", 1, 1);
    EXPECT_EQ(Call(ada_, /*wants_lease=*/true), "");
    ada_.lease = granted_;
    EXPECT_EQ(ada_.lease.trials_size(), 1);
    // Otherwise the server would take the lease back at the next call that does not want one.
    EXPECT_EQ(Heartbeat(ada_), "");
    EXPECT_EQ(UploadArtifact(ada_), "");
    EXPECT_EQ(Send(ada_, CheckpointEvent(ada_.lease, 0, 1, 10, kModel)), "");
  }

  std::string Token(const std::string& principal) {
    v1::CreateTokenRequest request;
    request.set_principal(principal);
    request.set_role(v1::WORKER);
    return tokens_->Create(request).value().text();
  }

  // The methods, called with `shown`.
  std::vector<Method> Methods() {
    const auto method = [this](const std::string& name,
                               std::string (LeaseOwnerTest::*call)(const Shown&)) {
      return Method{.name = kService + name,
                    .call = [this, call](const Shown& shown) { return (this->*call)(shown); }};
    };
    return {method("UploadArtifact", &LeaseOwnerTest::UploadArtifact),
            method("DownloadArtifact", &LeaseOwnerTest::DownloadArtifact),
            method("SignTransfer", &LeaseOwnerTest::SignTransfer),
            method("StreamEvents", &LeaseOwnerTest::StreamEvents),
            method("Synchronize", &LeaseOwnerTest::Heartbeat),
            // Last, because it ends the lease.
            method("Synchronize", &LeaseOwnerTest::ReleaseLease)};
  }

  v1::SynchronizeRequest RequestOf(const Shown& shown) {
    v1::SynchronizeRequest request;
    request.mutable_worker()->set_worker_id(shown.worker);
    request.mutable_worker()->set_max_pack_size(1);
    request.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
    request.set_session("session");
    request.set_number(++calls_);
    return request;
  }
  // A call without a lease.
  std::string Call(const Shown& shown, bool wants_lease = false) {
    v1::SynchronizeRequest request = RequestOf(shown);
    request.set_wants_lease(wants_lease);
    v1::SynchronizeResponse response;
    std::string told = Told(stub_->Synchronize(Context(shown).get(), request, &response));
    granted_ = response.lease();
    return told;
  }
  std::string Heartbeat(const Shown& shown) {
    v1::SynchronizeRequest request = RequestOf(shown);
    v1::HeldLease& held = *request.add_leases();
    held.set_lease_id(shown.lease.lease_id());
    held.set_fencing_token(shown.lease.fencing_token());
    v1::TrialProgress& progress = *request.add_progress();
    progress.set_trial(shown.lease.trials(0).trial());
    progress.set_attempt(shown.lease.trials(0).attempt());
    progress.set_loss(static_cast<float>(++progress_));
    v1::SynchronizeResponse response;
    const grpc::Status status = stub_->Synchronize(Context(shown).get(), request, &response);
    const bool lost = status.ok() && response.leases(0).lost();
    return lost ? "the lease is lost" : Told(status);
  }
  std::string UploadArtifact(const Shown& shown) {
    const auto context = Context(shown);
    v1::UploadArtifactResponse response;
    const auto writer = stub_->UploadArtifact(context.get(), &response);
    v1::UploadArtifactRequest request;
    v1::UploadArtifactRequest::Header& header = *request.mutable_header();
    header.set_lease_id(shown.lease.lease_id());
    header.set_fencing_token(shown.lease.fencing_token());
    header.set_trial(shown.lease.trials(0).trial());
    header.set_sha256(platform::Sha256Hex(kModel));
    header.set_size_bytes(static_cast<int64_t>(sizeof(kModel) - 1));
    header.set_step(10);
    writer->Write(request);
    request.clear_header();
    request.set_data(kModel);
    writer->Write(request);
    writer->WritesDone();
    return Told(writer->Finish());
  }
  std::string DownloadArtifact(const Shown& shown) {
    v1::DownloadArtifactRequest request;
    request.set_lease_id(shown.lease.lease_id());
    request.set_fencing_token(shown.lease.fencing_token());
    request.set_trial(shown.lease.trials(0).trial());
    request.set_sha256(platform::Sha256Hex(kModel));
    const auto context = Context(shown);
    const auto reader = stub_->DownloadArtifact(context.get(), request);
    v1::DownloadArtifactResponse response;
    std::string bytes;
    while (reader->Read(&response)) bytes += response.data();
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(bytes, status.ok() ? kModel : "");
    return Told(status);
  }
  std::string SignTransfer(const Shown& shown) {
    v1::SignTransferRequest request;
    request.set_lease_id(shown.lease.lease_id());
    request.set_fencing_token(shown.lease.fencing_token());
    request.set_trial(shown.lease.trials(0).trial());
    request.set_sha256(platform::Sha256Hex(kModel));
    request.set_direction(v1::SignTransferRequest::GET);
    v1::SignTransferResponse response;
    const grpc::Status status = stub_->SignTransfer(Context(shown).get(), request, &response);
    // The owner's call passes the check of the lease; this server has no object store.
    return status.error_code() == grpc::StatusCode::UNIMPLEMENTED ? "" : Told(status);
  }
  std::string StreamEvents(const Shown& shown) {
    v1::Event event = PointsEvent(shown.lease, 0, 2, 10);
    event.mutable_log_line()->set_text("a line");
    return Send(shown, event);
  }
  std::string ReleaseLease(const Shown& shown) {
    v1::SynchronizeRequest request = RequestOf(shown);
    v1::ReleasedLease& released = *request.add_released();
    released.set_lease_id(shown.lease.lease_id());
    released.set_fencing_token(shown.lease.fencing_token());
    v1::SynchronizeResponse response;
    const grpc::Status status = stub_->Synchronize(Context(shown).get(), request, &response);
    if (!status.ok()) return Told(status);
    const std::string trial = shown.lease.trials(0).trial();
    const bool runs = coordinator_->reads().GetTrial(trial)->state() == v1::RUNNING;
    return runs ? "it is still leased" : "";
  }
  std::string Send(const Shown& shown, const v1::Event& event) {
    const auto context = Context(shown);
    const auto stream = stub_->StreamEvents(context.get());
    v1::StreamEventsRequest request;
    request.set_lease_id(shown.lease.lease_id());
    request.set_fencing_token(shown.lease.fencing_token());
    *request.add_events() = event;
    stream->Write(request);
    stream->WritesDone();
    v1::StreamEventsResponse response;
    EXPECT_TRUE(stream->Read(&response));
    const grpc::Status status = stream->Finish();
    const bool refused = response.refusal() != v1::StreamEventsResponse::REFUSAL_UNSPECIFIED;
    // The response says nothing about the trial.
    if (refused) {
      EXPECT_EQ(response.acknowledged_sequence(), 0);
    }
    return refused ? response.detail() : Told(status);
  }

  static std::unique_ptr<grpc::ClientContext> Context(const Shown& shown) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("authorization", "Bearer " + shown.token);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return context;
  }
  static std::string Told(const grpc::Status& status) {
    return status.ok() ? "" : absl::StrCat(status.error_code(), ": ", status.error_message());
  }

  // Everything stored about the trial.
  std::string State() {
    std::string state = coordinator_->reads().GetTrial(ada_.lease.trials(0).trial())->DebugString();
    for (const v1::Event& event : coordinator_.History(experiment_)) state += event.DebugString();
    int64_t since = 0;
    for (const auto& progress : coordinator_->event_log().ReadProgress(experiment_, 10, since)) {
      state += progress.DebugString();
    }
    return state;
  }

  TestCoordinator coordinator_;
  std::unique_ptr<TokenStore> tokens_;
  const std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  Shown ada_;
  Shown grace_;
  std::string experiment_;
  v1::Lease granted_;
  int64_t calls_ = 0;
  int64_t progress_ = 0;
};

TEST_F(LeaseOwnerTest, EveryMethodOfWorkersIsTried) {
  std::set<std::string> tried;
  for (const Method& method : Methods()) tried.insert(method.name);
  std::set<std::string> all;
  for (const Rule& rule : Rules()) {
    if (rule.access == Access::kWork) all.emplace(rule.method);
  }
  // It refuses everybody.
  EXPECT_EQ(all.erase(absl::StrCat(kService, "RegisterWorker")), 1u);
  EXPECT_EQ(tried, all);
}

TEST_F(LeaseOwnerTest, EveryMethodRefusesAnotherPrincipal) {
  const std::string before = State();
  const std::string guess = absl::StrCat("lease-", ada_.lease.fencing_token());
  for (const Method& method : Methods()) {
    Shown shown = {.token = grace_.token, .worker = ada_.worker, .lease = ada_.lease};
    EXPECT_NE(method.call(shown), "") << method.name << " as the other's worker";
    shown.worker = grace_.worker;
    EXPECT_NE(method.call(shown), "") << method.name << " with the other's lease";
    shown.lease.set_lease_id(guess);
    EXPECT_NE(method.call(shown), "") << method.name << " with a guess";
  }
  EXPECT_EQ(State(), before);
}

TEST_F(LeaseOwnerTest, GuessedIdIsRefusedForTheSamePrincipal) {
  for (const Method& method : Methods()) {
    Shown shown = ada_;
    shown.lease.set_lease_id(absl::StrCat("lease-", ada_.lease.fencing_token()));
    EXPECT_NE(method.call(shown), "") << method.name;
  }
}

TEST_F(LeaseOwnerTest, EveryMethodAcceptsTheOwner) {
  for (const Method& method : Methods()) EXPECT_EQ(method.call(ada_), "") << method.name;
  EXPECT_EQ(coordinator_->reads().GetTrial(ada_.lease.trials(0).trial())->state(), v1::QUEUED);
}

TEST_F(LeaseOwnerTest, AnotherTokenOfTheSamePrincipalIsAccepted) {
  ada_.token = Token("ada");
  for (const Method& method : Methods()) EXPECT_EQ(method.call(ada_), "") << method.name;
}

// A worker that reads no answer would keep the server busy with leases that it cannot send.
TEST_F(LeaseOwnerTest, LeaseIsNotMadeWhileItsAnswerFindsNoRoom) {
  coordinator_.Create("more", 1, 1);
  v1::SynchronizeResponse large;
  large.mutable_lease()->set_lease_id(std::string(100 << 20, 'x'));
  AnswerBudget& answers = streams_->answers();
  const std::string payer = "the workers of grace";
  auto unread = answers.Take(payer, /*method=*/"", v1::SynchronizeRequest());
  ASSERT_TRUE(unread.ok()) << unread.status();
  const absl::Time start = absl::Now();
  EXPECT_FALSE(answers.Take(payer, "lengthwise.v1.WorkerService/Synchronize", large).ok());
  EXPECT_EQ(Call(grace_, /*wants_lease=*/true), "");
  // The refusal counts for two seconds.
  if (absl::Now() - start < absl::Seconds(2)) {
    EXPECT_EQ(granted_.trials_size(), 0);
  }
  unread->reset();
  // The answer to the call before may still count: the client has it before the server knows.
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (granted_.trials_size() == 0 && absl::Now() < end) {
    EXPECT_EQ(Call(grace_, /*wants_lease=*/true), "");
  }
  EXPECT_EQ(granted_.trials_size(), 1);
}

TEST_F(LeaseOwnerTest, WorkerIdIsFreeAfterALeaseOfSilence) {
  Shown shown = grace_;
  shown.worker = ada_.worker;
  EXPECT_NE(Call(shown), "");
  coordinator_.Advance(absl::Seconds(31));
  EXPECT_EQ(Call(shown), "");
  // Now it belongs to the other principal.
  EXPECT_NE(Call(ada_), "");
}

}  // namespace
}  // namespace lengthwise::server
