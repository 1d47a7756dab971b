// Calls every method that the running server has, as each kind of caller: none is open by
// forgetting.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/access/authorization.h"
#include "server/access/token_store.h"
#include "server/services/byte_call.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

// The services that the server says it has, as a client may list them.
std::set<std::string> ServicesOf(const std::string& address) {
  // grpc.reflection.v1alpha.ServerReflectionRequest: field 7 (list_services) = "*".
  const std::string answer = CallWithBytes(
      address, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
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
    RpcServer::Options options;
    options.tokens = tokens_.get();
    server_ = RpcServer::Start(std::move(options), coordinator_).value();
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    for (const std::string& service : ServicesOf(server_->address())) {
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

  // Sends one message, an empty one, and nothing more; the status of the call.
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
    return status.error_code();
  }

  FakeCoordinator coordinator_;
  std::unique_ptr<TokenStore> tokens_;
  std::string admin_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::set<std::string> methods_;
};

TEST_F(EveryRpcTest, RefusesWhoHasNoToken) {
  EXPECT_GE(methods_.size(), 30u);
  for (const std::string& method : methods_) {
    const grpc::StatusCode code = Call(method, std::nullopt);
    // Behind a method that is not there, there is nothing to protect.
    if (code == grpc::StatusCode::UNIMPLEMENTED) continue;
    EXPECT_EQ(code, grpc::StatusCode::UNAUTHENTICATED) << method;
  }
  EXPECT_TRUE(coordinator_.created().empty());
}

TEST_F(EveryRpcTest, RefusesATokenThatIsNotTheServers) {
  for (const std::string& method : methods_) {
    for (const std::string& token :
         {std::string("secret"), "lw_" + std::string(12, '0') + "_" + std::string(64, '0')}) {
      const grpc::StatusCode code = Call(method, token);
      if (code == grpc::StatusCode::UNIMPLEMENTED) continue;
      EXPECT_EQ(code, grpc::StatusCode::UNAUTHENTICATED) << method;
    }
  }
}

TEST_F(EveryRpcTest, DoesForEachRoleWhatTheTableSays) {
  for (const v1::Role role : {v1::VIEWER, v1::SUBMITTER, v1::WORKER, v1::ADMIN}) {
    const std::string token = Token(role);
    for (const std::string& method : methods_) {
      const grpc::StatusCode code = Call(method, token);
      if (code == grpc::StatusCode::UNIMPLEMENTED) continue;
      const bool may = MayCall({.principal = "ada", .role = role}, method).ok();
      EXPECT_EQ(code == grpc::StatusCode::PERMISSION_DENIED, !may)
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
    ADD_FAILURE() << method << " changes something, and does not say what by its `name`";
    return "";
  }
  const std::unique_ptr<google::protobuf::Message> request(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(found->input_type())
          ->New());
  request->GetReflection()->SetString(request.get(), field, experiment);
  return request->SerializeAsString();
}

TEST_F(EveryRpcTest, ChangesAnExperimentForItsOwnerAlone) {
  coordinator_.AddExperiment("experiments/of-ada-1", 2);
  coordinator_.SetOwner("experiments/of-ada-1", "ada");
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
  EXPECT_TRUE(coordinator_.cancellations().empty());
  EXPECT_TRUE(coordinator_.GetExperiment("experiments/of-ada-1").ok());
  for (const Rule* rule : changes) {
    const std::string method(rule->method);
    EXPECT_NE(Call(method, ada, RequestAbout("experiments/of-ada-1", method)),
              grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
}

TEST_F(EveryRpcTest, IsOpenToAllOnAServerWithoutTokens) {
  const std::unique_ptr<RpcServer> open = RpcServer::Start({}, coordinator_).value();
  channel_ = grpc::CreateChannel(open->address(), grpc::InsecureChannelCredentials());
  for (const std::string& method : methods_) {
    const grpc::StatusCode code = Call(method, std::nullopt);
    EXPECT_NE(code, grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_NE(code, grpc::StatusCode::PERMISSION_DENIED) << method;
  }
}

TEST_F(EveryRpcTest, HealthIsForLoadBalancersThatHaveNoToken) {
  EXPECT_EQ(Call("grpc.health.v1.Health/Check", std::nullopt), grpc::StatusCode::OK);
}

}  // namespace
}  // namespace lengthwise::server
