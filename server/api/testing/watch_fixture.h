// Test fixture: clients that watch an experiment over a real connection.
#ifndef LENGTHWISE_SERVER_API_TESTING_WATCH_FIXTURE_H_
#define LENGTHWISE_SERVER_API_TESTING_WATCH_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/experiment_service.grpc.pb.h"
#include "server/api/open_streams.h"
#include "server/api/rpc_server.h"
#include "server/api/testing/test_server.h"

namespace lengthwise::server {

// Positions 1 and 2 are the starts of the two trials.
inline constexpr int64_t kFirst = 3;

inline std::string NameOf(int index) { return absl::StrCat(kExperiment, "/trials/t", index); }

// An event of half a mebibyte, which is more than a connection's flow control buffers.
inline v1::Event Large(int64_t bytes = 512 << 10) {
  v1::Event event;
  event.set_trial(NameOf(0));
  v1::AttentionMap& map = *event.mutable_attention_map();
  map.set_length(1);
  map.set_layers(1);
  map.set_heads(static_cast<int32_t>(bytes / 4));
  map.add_tokens(1);
  map.add_positions(0);
  map.set_probabilities(std::string(bytes, 'p'));
  return event;
}

inline v1::Event Line(const std::string& text, int trial = 0) {
  v1::Event event;
  event.set_trial(NameOf(trial));
  event.mutable_log_line()->set_text(text);
  return event;
}

// A client's stream. Its deadline makes a hanging server fail the test instead of blocking it.
class Watch {
 public:
  Watch(v1::ExperimentService::Stub& stub, v1::WatchExperimentRequest request) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    request.set_name(request.name().empty() ? kExperiment : request.name());
    reader_ = stub.WatchExperiment(&context_, request);
  }
  // Reads until `count` events other than changes of state have arrived (over all calls), or the
  // stream ends.
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
      // The server adds changes of state to the events that a test appends.
      if (event.has_state_change()) {
        ++changes_;
        continue;
      }
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
  int changes() const { return changes_; }
  int caught_up() const { return caught_up_; }
  size_t events_at_caught_up() const { return events_at_caught_up_; }
  int64_t next_position() const { return next_position_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchExperimentResponse>> reader_;
  std::vector<int64_t> positions_;
  std::vector<std::string> texts_;
  std::vector<v1::TrialProgress> progress_;
  int changes_ = 0;  // changes of state
  int caught_up_ = 0;
  size_t events_at_caught_up_ = 0;
  int64_t next_position_ = 0;
};

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    RpcServer::Options options;
    options.streams = streams_;
    EXPECT_EQ(server_.AddExperiment("grid", 2), kExperiment);
    server_.Serve(std::move(options));
    stub_ = v1::ExperimentService::NewStub(server_.Connect());
  }
  void AppendLines(int from, int to) {
    std::vector<v1::Event> lines;
    for (int i = from; i < to; ++i) lines.push_back(Line(absl::StrCat("line ", i), i % 2));
    server_.Append(lines);
  }
  void EndAllTrials() {
    server_.EndTrial(NameOf(0));
    server_.EndTrial(NameOf(1));
  }
  int64_t Subscriptions() { return server_.core().event_log().subscriptions(); }

  // Waits until this many watchers are behind.
  bool AwaitBehind(int64_t watchers) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (streams_->ReadLags(absl::Now()).behind != watchers) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
  TestServer server_;
  std::unique_ptr<v1::ExperimentService::Stub> stub_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_TESTING_WATCH_FIXTURE_H_
