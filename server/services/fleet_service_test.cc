#include "server/services/fleet_service.h"

#include <chrono>
#include <memory>

#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

TEST(FleetServiceTest, ListsTheWorkersOfTheCoordinator) {
  FakeCoordinator coordinator;
  const std::unique_ptr<RpcServer> server = RpcServer::Start({}, coordinator).value();
  const auto stub = v1::FleetService::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(stub->ListWorkers(&context, {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).worker_id(), "n07-cpu-1");
}

}  // namespace
}  // namespace lengthwise::server
