// Calls every method of the running server as each kind of caller: no method is open because it was
// forgotten.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/access_service.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/role_name.h"
#include "proto/worker_service.pb.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/byte_call.h"
#include "server/api/testing/test_server.h"
#include "server/security/audit_log.h"
#include "server/security/authorization.h"
#include "server/security/token_store.h"

namespace lengthwise::server {
namespace {

// The services of the server, as a client may list them.
std::set<std::string> ServicesOf(const std::string& address, const std::string& token) {
  // grpc.reflection.v1alpha.ServerReflectionRequest: field 7 (list_services) = "*".
  const std::string answer =
      CallWithBytes(address, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                    "\x3a\x01*", token);
  const std::regex name("lengthwise\\.v1\\.[A-Za-z]+");
  return {std::sregex_token_iterator(answer.begin(), answer.end(), name),
          std::sregex_token_iterator()};
}

class EveryRpcTest : public testing::Test {
 protected:
  EveryRpcTest() {
    const std::string directory =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    tokens_ = TokenStore::Open(directory).value();
    admin_ = Token(v1::ADMIN);
    audit_file_ = directory + "/audit.log";
    audit_ = std::make_unique<AuditLog>(AuditLog::Options{.file = {.path = audit_file_}});
    RpcServer::Options options;
    options.tokens = tokens_.get();
    options.audit = audit_.get();
    server_ = RpcServer::Start(std::move(options), test_.core()).value();
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    for (const std::string& service : ServicesOf(server_->address(), admin_)) {
      const google::protobuf::ServiceDescriptor* found =
          google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
      EXPECT_NE(found, nullptr) << service;
      for (int i = 0; found != nullptr && i < found->method_count(); ++i) {
        methods_.insert(service + "/" + found->method(i)->name());
      }
    }
  }

  std::string Token(v1::Role role, const std::string& principal = "ada") {
    v1::CreateTokenRequest request;
    request.set_principal(principal);
    request.set_role(role);
    return tokens_->Create(request).value().text();
  }

  // Sends one message, empty by default, and returns the status of the call.
  grpc::StatusCode Call(const std::string& method, const std::optional<std::string>& token,
                        const std::string& message = "") {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    if (token.has_value()) context.AddMetadata("authorization", "Bearer " + *token);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, "/" + method, &queue);
    const auto wait = [&] {
      void* tag;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    call->StartCall(nullptr);
    wait();
    const grpc::Slice bytes(message);
    call->WriteLast(grpc::ByteBuffer(&bytes, 1), grpc::WriteOptions(), nullptr);
    wait();
    grpc::ByteBuffer answer;
    do {
      call->Read(&answer, nullptr);
    } while (wait());
    grpc::Status status;
    call->Finish(&status, nullptr);
    wait();
    // The core refuses another caller's lease with the same code as the gate.
    is_lease_refused_ = status.error_message().find("is not the caller's") != std::string::npos;
    return status.error_code();
  }

  // Stops the server and returns the lines of its audit log, by method.
  std::map<std::string, std::vector<nlohmann::json>> AuditLines() {
    server_.reset();
    audit_.reset();
    std::map<std::string, std::vector<nlohmann::json>> lines;
    std::ifstream file(audit_file_);
    for (std::string line; std::getline(file, line);) {
      nlohmann::json parsed = nlohmann::json::parse(line);
      lines["lengthwise.v1." + parsed["method"].get<std::string>()].push_back(std::move(parsed));
    }
    return lines;
  }

  TestServer test_;
  bool is_lease_refused_ = false;  // in the newest call
  std::unique_ptr<TokenStore> tokens_;
  std::string admin_;
  std::string audit_file_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::set<std::string> methods_;
};

TEST_F(EveryRpcTest, RefusesCallersWithoutAToken) {
  EXPECT_GE(methods_.size(), 30u);
  for (const std::string& method : methods_) {
    const grpc::StatusCode code = Call(method, std::nullopt);
    // An unknown method has nothing to protect.
    if (code == grpc::StatusCode::UNIMPLEMENTED) continue;
    EXPECT_EQ(code, grpc::StatusCode::UNAUTHENTICATED) << method;
  }
  EXPECT_EQ(test_.core().reads().ListExperiments({})->experiments_size(), 0);
}

TEST_F(EveryRpcTest, RefusesUnknownTokens) {
  for (const std::string& method : methods_) {
    for (const std::string& token :
         {std::string("secret"), "lw_" + std::string(12, '0') + "_" + std::string(64, '0')}) {
      const grpc::StatusCode code = Call(method, token);
      if (code == grpc::StatusCode::UNIMPLEMENTED) continue;
      EXPECT_EQ(code, grpc::StatusCode::UNAUTHENTICATED) << method;
    }
  }
}

TEST_F(EveryRpcTest, FollowsTheTableForEachRole) {
  for (const v1::Role role : kRoles) {
    const std::string token = Token(role);
    for (const std::string& method : methods_) {
      const grpc::StatusCode code = Call(method, token);
      EXPECT_NE(code, grpc::StatusCode::UNIMPLEMENTED) << method << " was not added to its service";
      const bool may = MayCall({.principal = "ada", .role = role}, method).ok();
      EXPECT_EQ(code == grpc::StatusCode::PERMISSION_DENIED && !is_lease_refused_, !may)
          << method << " as " << v1::Role_Name(role) << " gives " << code;
      EXPECT_NE(code, grpc::StatusCode::UNAUTHENTICATED) << method;
    }
  }
}

// A request of the method about an experiment.
std::string RequestAbout(const std::string& experiment, absl::string_view method) {
  std::string name(method);
  std::replace(name.begin(), name.end(), '/', '.');
  const google::protobuf::MethodDescriptor* found =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  const google::protobuf::FieldDescriptor* field =
      found == nullptr ? nullptr : found->input_type()->FindFieldByName("name");
  if (field == nullptr) {
    ADD_FAILURE() << method << " changes something but has no `name` field";
    return "";
  }
  const std::unique_ptr<google::protobuf::Message> request(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(found->input_type())
          ->New());
  request->GetReflection()->SetString(request.get(), field, experiment);
  return request->SerializeAsString();
}

TEST_F(EveryRpcTest, ChangesExperimentsOnlyForTheirOwner) {
  ASSERT_EQ(test_.AddExperiment("of-ada", 2, "ada"), "experiments/of-ada-1");
  const std::string grace = Token(v1::SUBMITTER, "grace");
  const std::string ada = Token(v1::SUBMITTER, "ada");
  std::vector<const Rule*> changes;
  for (const Rule& rule : Rules()) {
    if (rule.access == Access::kChange) changes.push_back(&rule);
  }
  EXPECT_GE(changes.size(), 5u);
  for (const Rule* rule : changes) {
    const std::string method(rule->method);
    EXPECT_EQ(Call(method, grace, RequestAbout("experiments/of-ada-1", method)),
              grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
  EXPECT_EQ(test_.core().reads().GetExperiment("experiments/of-ada-1")->trials().running(), 2);
  for (const Rule* rule : changes) {
    const std::string method(rule->method);
    EXPECT_NE(Call(method, ada, RequestAbout("experiments/of-ada-1", method)),
              grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
}

TEST_F(EveryRpcTest, RefusalsOfEveryMethodAreAudited) {
  const std::string wrong = "lw_" + std::string(12, '0') + "_" + std::string(64, 'c');
  const std::string viewer = Token(v1::VIEWER, "vera");
  std::set<std::string> there;
  for (const std::string& method : methods_) {
    if (Call(method, wrong) == grpc::StatusCode::UNIMPLEMENTED) continue;
    Call(method, viewer);
    there.insert(method);
  }
  EXPECT_GE(there.size(), 30u);
  auto lines = AuditLines();
  for (const std::string& method : there) {
    const bool may = MayCall({.principal = "vera", .role = v1::VIEWER}, method).ok();
    ASSERT_EQ(lines[method].size(), may ? 1u : 2u) << method;
    const nlohmann::json& first = lines[method][0];
    EXPECT_EQ(first["outcome"], "UNAUTHENTICATED");
    EXPECT_TRUE(first["principal"].is_null());
    EXPECT_THAT(first["peer"].get<std::string>(), testing::StartsWith("127.0.0.1:"));
    if (may) continue;
    EXPECT_EQ(lines[method][1]["outcome"], "PERMISSION_DENIED");
    EXPECT_EQ(lines[method][1]["principal"], "vera");
    EXPECT_EQ(lines[method][1]["role"], "viewer");
  }
  std::ifstream file(audit_file_);
  const std::string all(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(all, testing::Not(testing::HasSubstr(std::string(20, 'c'))));
}

TEST_F(EveryRpcTest, RefusalsOfARevokedTokenNameItsPrincipal) {
  const std::string method = "lengthwise.v1.AccessService/GetCaller";
  const std::string sam = Token(v1::SUBMITTER, "sam");
  v1::RevokeTokenRequest revoke;
  revoke.set_principal("sam");
  ASSERT_TRUE(tokens_->Revoke(revoke).ok());
  // The first is refused before gRPC sees it, as the first call of its connection.
  EXPECT_EQ(Call(method, sam), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call(method, admin_), grpc::StatusCode::OK);
  EXPECT_EQ(Call(method, sam), grpc::StatusCode::UNAUTHENTICATED);
  const auto lines = AuditLines()[method];
  ASSERT_EQ(lines.size(), 2u);
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ(line["principal"], "sam");
    EXPECT_EQ(line["role"], "submitter");
    EXPECT_TRUE(line["token_id"].is_string());
  }
}

TEST_F(EveryRpcTest, ChangingCallsAreInTheAuditLog) {
  ASSERT_EQ(test_.AddExperiment("of-ada", 2), "experiments/of-ada-1");
  // An ended experiment can be deleted.
  ASSERT_TRUE(test_.calls().Cancel("experiments/of-ada-1").ok());
  int changing = 0;
  for (const std::string& method : methods_) {
    const Rule* rule = FindRule(method);
    if (rule == nullptr || rule->audit != Audit::kEveryCall) {
      EXPECT_NE(Call(method, admin_), grpc::StatusCode::UNAUTHENTICATED);
      continue;
    }
    ++changing;
    Call(method, admin_,
         rule->access == Access::kChange ? RequestAbout("experiments/of-ada-1", method) : "");
  }
  EXPECT_GE(changing, 10);
  auto lines = AuditLines();
  EXPECT_EQ(lines.size(), static_cast<size_t>(changing)) << "reading leaves no line";
  for (const auto& [method, all] : lines) {
    ASSERT_EQ(all.size(), 1u) << method;
    EXPECT_EQ(all[0]["principal"], "ada");
    EXPECT_EQ(all[0]["role"], "admin");
    if (FindRule(method)->access == Access::kChange) {
      EXPECT_EQ(all[0]["resource"], "experiments/of-ada-1") << method;
    }
  }
  EXPECT_EQ(lines["lengthwise.v1.ExperimentService/DeleteExperiment"][0]["outcome"], "OK");
}

TEST_F(EveryRpcTest, AuditLogNamesCreatedObjects) {
  v1::CreateTokenRequest token;
  token.set_principal("grace");
  token.set_role(v1::SUBMITTER);
  EXPECT_EQ(Call("lengthwise.v1.AccessService/CreateToken", admin_, token.SerializeAsString()),
            grpc::StatusCode::OK);
  v1::CreateExperimentRequest experiment;
  experiment.set_request_id("again\x1b[2J");
  experiment.mutable_specification()->set_name("mine");
  experiment.mutable_specification()->add_learning_rates(0.001);
  experiment.mutable_specification()->add_seeds(1);
  EXPECT_EQ(Call("lengthwise.v1.ExperimentService/CreateExperiment", admin_,
                 experiment.SerializeAsString()),
            grpc::StatusCode::OK);
  const std::string token_id = tokens_->List().value().tokens(0).token_id();
  auto lines = AuditLines();
  const nlohmann::json& made = lines["lengthwise.v1.AccessService/CreateToken"].at(0);
  EXPECT_EQ(made["resource"], "grace SUBMITTER");
  EXPECT_EQ(made["made"], token_id);
  const nlohmann::json& created = lines["lengthwise.v1.ExperimentService/CreateExperiment"].at(0);
  EXPECT_THAT(created["made"].get<std::string>(), testing::StartsWith("experiments/"));
  EXPECT_EQ(created["request_id"], "again\x1b[2J");
}

TEST_F(EveryRpcTest, AuditLogSaysWhoseTokensWereRevokedAndWhyTrialsWereCancelled) {
  ASSERT_EQ(test_.AddExperiment("of-ada", 2), "experiments/of-ada-1");
  Token(v1::SUBMITTER, "sam");
  v1::RevokeTokenRequest revoke;
  revoke.set_token_id(tokens_->List().value().tokens(0).token_id());
  EXPECT_EQ(Call("lengthwise.v1.AccessService/RevokeToken", admin_, revoke.SerializeAsString()),
            grpc::StatusCode::OK);
  v1::CancelExperimentRequest cancel;
  cancel.set_name("experiments/of-ada-1");
  cancel.set_reason("has left");
  EXPECT_EQ(
      Call("lengthwise.v1.ExperimentService/CancelExperiment", admin_, cancel.SerializeAsString()),
      grpc::StatusCode::OK);
  auto lines = AuditLines();
  EXPECT_EQ(lines["lengthwise.v1.AccessService/RevokeToken"].at(0)["made"], "sam");
  EXPECT_EQ(lines["lengthwise.v1.ExperimentService/CancelExperiment"].at(0)["stated_reason"],
            "has left");
}

// The stream that carries them continues and ends with OK.
TEST_F(EveryRpcTest, EventsForAnothersLeaseAreInTheAuditLog) {
  const std::string trial = test_.AddExperiment("grid", 1) + "/trials/t0";
  v1::StreamEventsRequest request;
  request.set_lease_id("lease-1-" + std::string(32, '0'));
  request.set_fencing_token(1);
  v1::Event& event = *request.add_events();
  event.set_trial(trial);
  event.set_attempt(1);
  event.set_sequence(1);
  event.mutable_outcome()->set_kind(v1::Outcome::FAILED_PERMANENTLY);
  EXPECT_EQ(Call("lengthwise.v1.WorkerService/StreamEvents", Token(v1::WORKER, "mallory"),
                 request.SerializeAsString()),
            grpc::StatusCode::OK);
  const auto lines = AuditLines()["lengthwise.v1.WorkerService/StreamEvents"];
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["principal"], "mallory");
  EXPECT_EQ(lines[0]["outcome"], "PERMISSION_DENIED");
  EXPECT_EQ(lines[0]["resource"], trial);
  EXPECT_THAT(lines[0]["peer"].get<std::string>(), testing::StartsWith("127.0.0.1:"));
}

TEST_F(EveryRpcTest, UploadIsAuditedByItsHash) {
  v1::UploadDataRequest request;
  request.mutable_header()->set_sha256(std::string(64, 'a'));
  request.mutable_header()->set_size_bytes(1);
  // The data that the header announces does not follow.
  EXPECT_EQ(Call("lengthwise.v1.ExperimentService/UploadData", Token(v1::SUBMITTER, "grace"),
                 request.SerializeAsString()),
            grpc::StatusCode::DATA_LOSS);
  const auto lines = AuditLines()["lengthwise.v1.ExperimentService/UploadData"];
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["principal"], "grace");
  EXPECT_EQ(lines[0]["outcome"], "DATA_LOSS");
  EXPECT_EQ(lines[0]["resource"], std::string(16, 'a'));
}

TEST_F(EveryRpcTest, RefusalsDoNotFloodTheAuditLog) {
  // The edge lets a connection with a valid call open thousands of streams a second.
  EXPECT_EQ(Call("lengthwise.v1.AccessService/GetCaller", admin_), grpc::StatusCode::OK);
  const absl::Time start = absl::Now();
  int64_t calls = 0;
  const auto refuse = [&] {
    Call("lengthwise.v1.AccessService/GetCaller", std::nullopt);
    ++calls;
  };
  while (calls < 400) refuse();
  // A line says how many calls before it have none. Within a second there may be another line,
  // after which every call is accounted for.
  ASSERT_TRUE(TestServer::Await([&] {
    const int64_t before = audit_->counts().suppressed;
    refuse();
    return audit_->counts().suppressed > before;
  }));
  const absl::Duration elapsed = absl::Now() - start;
  const AuditLog::Counts counts = audit_->counts();
  const auto lines = AuditLines()["lengthwise.v1.AccessService/GetCaller"];
  int64_t suppressed = 0;
  for (const nlohmann::json& line : lines) suppressed += line.value("suppressed", int64_t{0});
  EXPECT_EQ(std::ssize(lines) + suppressed, calls);
  EXPECT_EQ(counts.suppressed, suppressed);
  // 100 at once, and one a second.
  EXPECT_GE(std::ssize(lines), 100);
  EXPECT_LE(static_cast<double>(std::ssize(lines)), 100 + absl::ToDoubleSeconds(elapsed));
}

TEST_F(EveryRpcTest, ServerWithoutTokensHasNoAuditLog) {
  RpcServer::Options options;
  options.audit = audit_.get();
  const std::unique_ptr<RpcServer> open =
      RpcServer::Start(std::move(options), test_.core()).value();
  channel_ = grpc::CreateChannel(open->address(), grpc::InsecureChannelCredentials());
  for (const std::string& method : methods_) {
    Call(method, std::nullopt);
    Call(method, std::nullopt, "\xff");  // not a message
  }
  EXPECT_TRUE(AuditLines().empty());
}

TEST_F(EveryRpcTest, IsOpenWithoutTokens) {
  const std::unique_ptr<RpcServer> open = RpcServer::Start({}, test_.core()).value();
  channel_ = grpc::CreateChannel(open->address(), grpc::InsecureChannelCredentials());
  for (const std::string& method : methods_) {
    const grpc::StatusCode code = Call(method, std::nullopt);
    EXPECT_NE(code, grpc::StatusCode::UNAUTHENTICATED) << method;
    if (is_lease_refused_) continue;
    EXPECT_NE(code, grpc::StatusCode::PERMISSION_DENIED) << method;
  }
}

TEST_F(EveryRpcTest, HealthNeedsNoToken) {
  EXPECT_EQ(Call("grpc.health.v1.Health/Check", std::nullopt), grpc::StatusCode::OK);
}

// A stream that a stranger does not read would cost memory.
TEST_F(EveryRpcTest, StreamsOfGrpcsServicesNeedAToken) {
  for (const char* method : {"grpc.health.v1.Health/Watch",
                             "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    EXPECT_EQ(Call(method, std::nullopt), grpc::StatusCode::UNAUTHENTICATED) << method;
  }
  // Also on a connection that has shown a token before.
  EXPECT_EQ(Call("lengthwise.v1.AccessService/GetCaller", admin_), grpc::StatusCode::OK);
  EXPECT_EQ(Call("grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", std::nullopt),
            grpc::StatusCode::UNAUTHENTICATED);
}

// gRPC compresses headers with a table: it must not miss fields of calls that the edge refused.
TEST_F(EveryRpcTest, CallsAfterRefusedOnesSucceed) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Call("lengthwise.v1.AccessService/GetCaller", std::nullopt),
              grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(Call("grpc.health.v1.Health/Check", std::nullopt), grpc::StatusCode::OK);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Call("lengthwise.v1.AccessService/GetCaller", admin_), grpc::StatusCode::OK);
  }
}

}  // namespace
}  // namespace lengthwise::server
