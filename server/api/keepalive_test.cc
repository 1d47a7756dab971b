// A peer whose process hangs: its kernel still answers, so only pings detect it.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"
#include "platform/files.h"
#include "proto/experiment_service.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/transport.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"

namespace lengthwise::server {
namespace {

// Shorter than in the programs; otherwise the same.
constexpr rpc::Pings kPings = {.interval_ms = 100, .timeout_ms = 1000};
// Many intervals: pings continue while nothing else is sent.
constexpr absl::Duration kIdle = absl::Seconds(1);

void Start(TestServer& server) {
  EXPECT_EQ(server.AddExperiment("grid", 1), kExperiment);
  RpcServer::Options options;
  options.pings = kPings;
  server.Serve(std::move(options));
}

// Watches until the stream ends, and returns its status.
grpc::Status Watch(const std::string& address) {
  const auto stub = v1::ExperimentService::NewStub(
      rpc::CreateChannel({.server = address, .pings = kPings}, {}).value());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(45));
  v1::WatchExperimentRequest request;
  request.set_name(kExperiment);
  const auto reader = stub->WatchExperiment(&context, request);
  v1::WatchExperimentResponse response;
  while (reader->Read(&response)) {
  }
  return reader->Finish();
}

// Starts this program again with one of the two tests below.
std::unique_ptr<platform::ChildProcess> StartPeer(const std::string& role,
                                                  const std::string& argument) {
  return platform::ChildProcess::Start(
             {.arguments = {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                            absl::StrCat("--gtest_filter=Peer.DISABLED_", role)},
              .environment = {{"LENGTHWISE_TEST_PEER", argument}}})
      .value();
}

TEST(Peer, DISABLED_Watches) { Watch(std::getenv("LENGTHWISE_TEST_PEER")); }

TEST(Peer, DISABLED_Serves) {
  TestServer server;
  Start(server);
  ASSERT_TRUE(
      platform::WriteFileAtomically(std::getenv("LENGTHWISE_TEST_PEER"), server.rpc().address())
          .ok());
  pause();
}

TEST(KeepaliveTest, StreamOfAHungClientEnds) {
  TestServer server;
  Start(server);
  const auto idle = StartPeer("Watches", server.rpc().address());
  const auto stopped = StartPeer("Watches", server.rpc().address());
  ASSERT_TRUE(TestServer::Await([&] { return server.core().event_log().subscriptions() == 2; }));
  EXPECT_FALSE(idle->WaitFor(kIdle).has_value()) << "it pings as often as it may";
  EXPECT_EQ(server.core().event_log().subscriptions(), 2);
  stopped->Signal(SIGSTOP);
  EXPECT_TRUE(TestServer::Await([&] { return server.core().event_log().subscriptions() == 1; }));
  EXPECT_FALSE(idle->WaitFor(kIdle).has_value());
  EXPECT_EQ(server.core().event_log().subscriptions(), 1);
}

TEST(KeepaliveTest, ClientNoticesAHungServer) {
  const std::string address_file = testing::TempDir() + "/keepalive_address";
  std::filesystem::remove(address_file);
  const auto server = StartPeer("Serves", address_file);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!std::filesystem::exists(address_file) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  const std::string address = platform::ReadFile(address_file).value();
  grpc::Status status;
  std::atomic<bool> ended = false;
  std::thread watcher([&] {
    status = Watch(address);
    ended = true;
  });
  EXPECT_FALSE(server->WaitFor(kIdle).has_value());
  EXPECT_FALSE(ended) << status.error_message();
  server->Signal(SIGSTOP);
  watcher.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

}  // namespace
}  // namespace lengthwise::server
