#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/fleet_service.grpc.pb.h"
#include "server/api/test_server.h"

namespace lengthwise::server {
namespace {

TEST(FleetServiceTest, ListsWorkersAndTheirTrials) {
  TestServer server;
  const std::string experiment = server.AddExperiment("grid", 1);
  server.Serve();
  const auto stub = v1::FleetService::NewStub(server.Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(stub->ListWorkers(&context, {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).worker_id(), "inside-1");
  EXPECT_TRUE(workers.workers(0).alive());
  EXPECT_THAT(workers.workers(0).trials(), testing::ElementsAre(experiment + "/trials/t0"));
}

TEST(FleetServiceTest, CountsWantedWorkers) {
  TestServer server;
  server.AddExperiment("grid", 1);
  server.Serve();
  const auto stub = v1::FleetService::NewStub(server.Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::GetWantedWorkersResponse wanted;
  ASSERT_TRUE(stub->GetWantedWorkers(&context, {}, &wanted).ok());
  // The only trial is running.
  EXPECT_EQ(wanted.runnable_packs(), 0);
  EXPECT_EQ(wanted.busy_workers(), 1);
  v1::GetWantedWorkersRequest wrong;
  wrong.set_max_pack_size(-1);
  grpc::ClientContext again;
  EXPECT_EQ(stub->GetWantedWorkers(&again, wrong, &wanted).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace lengthwise::server
