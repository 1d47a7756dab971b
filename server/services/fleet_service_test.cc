#include "server/services/fleet_service.h"

#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/services/test_server.h"

namespace lengthwise::server {
namespace {

TEST(FleetServiceTest, ListsWorkersAndWhatTheyRun) {
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

}  // namespace
}  // namespace lengthwise::server
