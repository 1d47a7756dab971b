#include "server/services/rpc_server.h"

#include <chrono>
#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/services/byte_call.h"
#include "server/services/fake_coordinator.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

TEST(RpcServer, TwoServersCannotShareAPort) {
  FakeCoordinator coordinator;
  const std::unique_ptr<RpcServer> first = RpcServer::Start({}, coordinator).value();
  RpcServer::Options options;
  options.listen = first->address();
  const absl::Status status = RpcServer::Start(std::move(options), coordinator).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot listen on " + first->address()));
}

TEST(RpcServer, TheAddressHasThePortThatWasBound) {
  FakeCoordinator coordinator;
  const std::unique_ptr<RpcServer> server = RpcServer::Start({}, coordinator).value();
  EXPECT_THAT(server->address(), ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
}

TEST(RpcServer, HealthIsServing) {
  FakeCoordinator coordinator;
  const std::unique_ptr<RpcServer> server = RpcServer::Start({}, coordinator).value();
  // grpc.health.v1.HealthCheckResponse: field 1 (status) = 1 (SERVING).
  EXPECT_EQ(CallWithBytes(server->address(), "/grpc.health.v1.Health/Check", ""), "\x08\x01");
  // The same of one service by its name (field 1 of the request).
  EXPECT_EQ(CallWithBytes(server->address(), "/grpc.health.v1.Health/Check",
                          "\x0a\x1flengthwise.v1.ExperimentService"),
            "\x08\x01");
}

TEST(RpcServer, ReflectionListsEveryService) {
  FakeCoordinator coordinator;
  const std::unique_ptr<RpcServer> server = RpcServer::Start({}, coordinator).value();
  // grpc.reflection.v1alpha.ServerReflectionRequest: field 7 (list_services) = "*".
  const std::string answer =
      CallWithBytes(server->address(),
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  for (const char* service :
       {"ExperimentService", "WorkerService", "FleetService", "CatalogueService"}) {
    EXPECT_THAT(answer, HasSubstr(std::string("lengthwise.v1.") + service));
  }
}

TEST(RpcServer, AMessageBeyondEightMebibytesIsRefusedByTheTransport) {
  FakeCoordinator coordinator;
  const std::unique_ptr<RpcServer> server = RpcServer::Start({}, coordinator).value();
  const auto stub = v1::ExperimentService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_description(std::string((8 << 20) + 1, 'x'));
  v1::CreateExperimentResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(stub->CreateExperiment(&context, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(coordinator.created().empty());
}

TEST(RpcServer, StopAnswersACallThatWaitsForALease) {
  FakeCoordinator coordinator;
  const std::unique_ptr<RpcServer> server = RpcServer::Start({}, coordinator).value();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  grpc::Status status;
  std::thread worker([&] {
    v1::AcquireLeaseRequest request;
    request.mutable_wait()->set_seconds(60);
    v1::AcquireLeaseResponse response;
    grpc::ClientContext context;
    status = stub->AcquireLease(&context, request, &response);
  });
  ASSERT_TRUE(coordinator.WaitFor([&] { return coordinator.held_answers() == 1; }));
  server->Stop(absl::Seconds(30));
  worker.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server is stopping");
}

}  // namespace
}  // namespace lengthwise::server
