// The threads that calls use, over a real connection.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "proto/access_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"

namespace lengthwise::server {
namespace {

std::unique_ptr<grpc::ClientContext> Within(std::chrono::seconds time) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + time);
  return context;
}

TEST(CallsTest, SlowReadsDelayNoOtherRpc) {
  TestServer server;
  const std::string trial_name = server.AddExperiment("grid", 1) + "/trials/t0";
  server.Serve();
  const auto channel = server.Connect();
  const auto experiments = v1::ExperimentService::NewStub(channel);
  const auto access = v1::AccessService::NewStub(channel);
  v1::Caller caller;
  server.read_gate().Hold();
  const int64_t reads = server.read_gate().reads();
  // More than gRPC has threads for all calls.
  std::vector<std::thread> readers;
  for (int i = 0; i < 64; ++i) {
    readers.emplace_back([&] {
      v1::GetTrialRequest request;
      request.set_name(trial_name);
      v1::Trial trial;
      EXPECT_TRUE(
          experiments->GetTrial(Within(std::chrono::seconds(120)).get(), request, &trial).ok());
    });
  }
  ASSERT_TRUE(TestServer::Await([&] { return server.read_gate().reads() > reads; }));

  const auto workers = v1::WorkerService::NewStub(channel);
  for (int i = 0; i < 100; ++i) {
    v1::SynchronizeResponse heard;
    EXPECT_EQ(workers->Synchronize(Within(std::chrono::seconds(20)).get(), {}, &heard).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_TRUE(access->GetCaller(Within(std::chrono::seconds(20)).get(), {}, &caller).ok());
  }
  server.read_gate().Release();
  for (std::thread& reader : readers) reader.join();
}

TEST(CallsTest, WorkersOfAPrincipalPayTogether) {
  const grpc::CallbackServerContext context;
  const std::string one =
      PayerOf(context, {.principal = "ada", .role = v1::WORKER, .token_id = "1"});
  EXPECT_EQ(PayerOf(context, {.principal = "ada", .role = v1::WORKER, .token_id = "2"}), one);
  EXPECT_NE(PayerOf(context, {.principal = "ada", .role = v1::VIEWER, .token_id = "3"}), one);
  EXPECT_NE(PayerOf(context, {.principal = "grace", .role = v1::WORKER, .token_id = "4"}), one);
}

TEST(CallsTest, RequestsThatWaitForAThreadAreLimited) {
  TestServer server;
  const std::string trial_name = server.AddExperiment("grid", 1) + "/trials/t0";
  server.Serve();
  const auto experiments = v1::ExperimentService::NewStub(server.Connect());
  server.read_gate().Hold();
  std::atomic<int> refused = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 64; ++i) {
    readers.emplace_back([&] {
      v1::GetTrialRequest request;
      request.set_name(trial_name);
      request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
          100, std::string(2 << 20, 'x'));
      v1::Trial trial;
      const grpc::Status status =
          experiments->GetTrial(Within(std::chrono::seconds(120)).get(), request, &trial);
      if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
        ++refused;
      } else {
        EXPECT_TRUE(status.ok()) << status.error_message();
      }
    });
  }
  // A client may have half of 256 MiB, and each request counts twice.
  EXPECT_TRUE(TestServer::Await([&] { return refused == 64 - 31; }));
  server.read_gate().Release();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(refused, 64 - 31);
}

}  // namespace
}  // namespace lengthwise::server
