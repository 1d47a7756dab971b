#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/fleet_service.grpc.pb.h"
#include "server/api/testing/test_server.h"

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

TEST(FleetServiceTest, HoldsLeasesBackUntilTheyResume) {
  TestServer server;
  server.AddExperiment("grid", 1);
  server.Serve();
  const auto stub = v1::FleetService::NewStub(server.Connect());
  const auto hold = [&](const std::string& worker, bool all) {
    v1::HoldLeasesRequest request;
    request.set_worker(worker);
    request.set_all(all);
    request.set_reason("new disks");
    grpc::ClientContext context;
    v1::HoldLeasesResponse response;
    return stub->HoldLeases(&context, request, &response).error_code();
  };
  const auto resume = [&](const std::string& worker) {
    v1::ResumeLeasesRequest request;
    request.set_worker(worker);
    grpc::ClientContext context;
    v1::ResumeLeasesResponse response;
    return stub->ResumeLeases(&context, request, &response).error_code();
  };
  EXPECT_EQ(hold("", false), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(hold("inside-1", true), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(hold("unknown", false), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(hold("inside-1", false), grpc::StatusCode::OK);
  EXPECT_EQ(hold("", true), grpc::StatusCode::OK);
  EXPECT_EQ(resume("unknown"), grpc::StatusCode::NOT_FOUND);
  const auto workers = [&] { return server.core().reads().ListWorkers(); };
  EXPECT_EQ(workers().workers(0).hold(), "drained: new disks");
  EXPECT_EQ(workers().queue_pause(), "paused: new disks");
  EXPECT_EQ(resume("inside-1"), grpc::StatusCode::OK);
  EXPECT_EQ(workers().workers(0).hold(), "");
  EXPECT_EQ(workers().queue_pause(), "paused: new disks");
}

}  // namespace
}  // namespace lengthwise::server
