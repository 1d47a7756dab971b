// Which threads calls take, over a real connection.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "platform/mutex.h"
#include "proto/access_service.grpc.pb.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/services/fake_coordinator.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {
namespace {

// Reads of trials wait until they are released.
class SlowCoordinator final : public FakeCoordinator {
 public:
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override {
    {
      platform::MutexLock lock(mutex_);
      ++reading_;
      changed_.NotifyAll();
      while (!released_) changed_.Wait(mutex_);
    }
    return FakeCoordinator::GetTrial(name);
  }
  void AwaitRead() {
    platform::MutexLock lock(mutex_);
    while (reading_ == 0) changed_.Wait(mutex_);
  }
  void Release() {
    platform::MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

 private:
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  int reading_ ABSL_GUARDED_BY(mutex_) = 0;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

std::unique_ptr<grpc::ClientContext> Within(std::chrono::seconds time) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + time);
  return context;
}

TEST(CallsTest, SlowReadsOfTheStoreHoldUpNoOtherRpc) {
  SlowCoordinator coordinator;
  coordinator.AddExperiment("experiments/grid-1", 1);
  const std::unique_ptr<RpcServer> server = RpcServer::Start({}, coordinator).value();
  const auto channel = grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials());
  const auto experiments = v1::ExperimentService::NewStub(channel);
  const auto access = v1::AccessService::NewStub(channel);
  v1::Caller caller;
  // The edge holds back what a connection sends until a call of it was admitted.
  ASSERT_TRUE(access->GetCaller(Within(std::chrono::seconds(20)).get(), {}, &caller).ok());
  // More than gRPC has threads for all calls.
  std::vector<std::thread> readers;
  for (int i = 0; i < 64; ++i) {
    readers.emplace_back([&] {
      v1::GetTrialRequest request;
      request.set_name("experiments/grid-1/trials/t0");
      v1::Trial trial;
      EXPECT_TRUE(
          experiments->GetTrial(Within(std::chrono::seconds(120)).get(), request, &trial).ok());
    });
  }
  coordinator.AwaitRead();

  const auto workers = v1::WorkerService::NewStub(channel);
  for (int i = 0; i < 100; ++i) {
    v1::HeartbeatResponse heard;
    EXPECT_EQ(workers->Heartbeat(Within(std::chrono::seconds(20)).get(), {}, &heard).error_code(),
              grpc::StatusCode::NOT_FOUND);
    EXPECT_TRUE(access->GetCaller(Within(std::chrono::seconds(20)).get(), {}, &caller).ok());
  }
  v1::QueryLossCurvesRequest query;
  query.set_name("experiments/grid-1");
  v1::QueryLossCurvesResponse curves;
  EXPECT_TRUE(
      experiments->QueryLossCurves(Within(std::chrono::seconds(20)).get(), query, &curves).ok());
  coordinator.Release();
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace lengthwise::server
