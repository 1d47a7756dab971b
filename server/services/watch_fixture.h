// Clients that watch a fake coordinator's experiment over a real connection.
#ifndef LENGTHWISE_SERVER_SERVICES_WATCH_FIXTURE_H_
#define LENGTHWISE_SERVER_SERVICES_WATCH_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/experiment_service.grpc.pb.h"
#include "server/services/fake_coordinator.h"
#include "server/services/open_streams.h"
#include "server/services/rpc_server.h"

namespace lengthwise::server {

inline constexpr char kExperiment[] = "experiments/grid-1";

inline std::string TrialName(int index) { return absl::StrCat(kExperiment, "/trials/t", index); }

inline v1::Event Line(const std::string& text, int trial = 0) {
  v1::Event event;
  event.set_trial(TrialName(trial));
  event.mutable_log_line()->set_text(text);
  return event;
}

// A client's stream with a deadline, so that a hanging server fails the test instead of blocking
// it.
class Watch {
 public:
  Watch(v1::ExperimentService::Stub& stub, v1::WatchExperimentRequest request) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    request.set_name(request.name().empty() ? kExperiment : request.name());
    reader_ = stub.WatchExperiment(&context_, request);
  }
  // Reads until `count` events are there (over all calls), or the stream ends.
  bool ReadEvents(size_t count) {
    while (positions_.size() < count) {
      if (!ReadOne()) return false;
    }
    return true;
  }
  bool ReadOne() {
    v1::WatchExperimentResponse response;
    if (!reader_->Read(&response)) return false;
    for (const v1::Event& event : response.events()) {
      positions_.push_back(event.position());
      texts_.push_back(event.log_line().text());
    }
    if (response.caught_up()) {
      ++caught_up_;
      events_at_caught_up_ = positions_.size();
    }
    for (const v1::TrialProgress& progress : response.progress()) progress_.push_back(progress);
    next_position_ = response.next_position();
    return true;
  }
  void ReadToEnd() {
    while (ReadOne()) {
    }
  }
  grpc::Status Finish() { return reader_->Finish(); }
  void Cancel() { context_.TryCancel(); }

  const std::vector<int64_t>& positions() const { return positions_; }
  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<v1::TrialProgress>& progress() const { return progress_; }
  int caught_up() const { return caught_up_; }
  size_t events_at_caught_up() const { return events_at_caught_up_; }
  int64_t next_position() const { return next_position_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchExperimentResponse>> reader_;
  std::vector<int64_t> positions_;
  std::vector<std::string> texts_;
  std::vector<v1::TrialProgress> progress_;
  int caught_up_ = 0;
  size_t events_at_caught_up_ = 0;
  int64_t next_position_ = 0;
};

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    RpcServer::Options options;
    options.streams = streams_;
    server_ = RpcServer::Start(std::move(options), coordinator_).value();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = v1::ExperimentService::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), arguments));
    coordinator_.AddExperiment(kExperiment, 2);
  }
  void AppendLines(int from, int to) {
    for (int i = from; i < to; ++i) coordinator_.Append(Line(absl::StrCat("line ", i), i % 2));
  }
  void EndAllTrials() {
    coordinator_.EndTrial(TrialName(0));
    coordinator_.EndTrial(TrialName(1));
  }

  // Waits until so many watchers are behind.
  bool AwaitBehind(int64_t watchers) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (streams_->ReadLags(absl::Now()).behind != watchers) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
  FakeCoordinator coordinator_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::ExperimentService::Stub> stub_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_WATCH_FIXTURE_H_
