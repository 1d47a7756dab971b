// Test fixture: runs a worker's loop against a fake server, with scripted packs.
#ifndef LENGTHWISE_WORKER_CONNECTION_TESTING_CONNECTION_FIXTURE_H_
#define LENGTHWISE_WORKER_CONNECTION_TESTING_CONNECTION_FIXTURE_H_

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "worker/connection/testing/fake_worker_service.h"
#include "worker/connection/worker_loop.h"

namespace lengthwise::worker {

// Does as a test says in place of training, which could neither fail nor wait on demand.
class FakeRunner final : public PackRunner {
 public:
  explicit FakeRunner(std::function<absl::Status(const v1::Lease&, PackSession&)> run)
      : run_(std::move(run)) {}
  absl::Status Run(const v1::Lease& lease, PackSession& session) override {
    return run_(lease, session);
  }
  v1::Provenance provenance() const override {
    v1::Provenance provenance;
    provenance.set_device("a fake");
    return provenance;
  }
  int32_t max_pack_size() const override { return 4; }
  absl::Status device_status() const override { return device; }

  // Of the runner's thread.
  absl::Status device;

 private:
  const std::function<absl::Status(const v1::Lease&, PackSession&)> run_;
};

inline v1::Event Point(int64_t step) {
  v1::Event event;
  event.set_step(step);
  event.mutable_training_points()->add_steps(step);
  return event;
}

inline v1::Event Completed() {
  v1::Event event;
  event.mutable_outcome()->set_kind(v1::Outcome::COMPLETED);
  return event;
}

inline v1::Lease LeaseOf(const std::vector<std::string>& trials, const std::string& id = "lease-1",
                         int64_t token = 11) {
  v1::Lease lease;
  lease.set_lease_id(id);
  lease.set_fencing_token(token);
  for (const std::string& trial : trials) {
    lease.add_trials()->set_trial(trial);
    lease.mutable_trials(lease.trials_size() - 1)->set_attempt(1);
  }
  return lease;
}

// Waits until the directive is no longer kContinue, like a runner that checks between steps.
inline PackSession::Directive AwaitDirective(PackSession& session, int64_t trial) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    const PackSession::Directive directive = session.GetDirective(trial);
    if (directive != PackSession::Directive::kContinue) return directive;
    std::this_thread::yield();
  }
  return PackSession::Directive::kContinue;
}

inline int64_t EventsOf(const FakeWorkerService::State& state, const std::string& trial) {
  const auto found = state.events.find(trial);
  return found == state.events.end() ? 0 : static_cast<int64_t>(found->second.size());
}

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() { server_.Start(); }
  ~ConnectionTest() override {
    if (loop_) loop_->Drain();
    server_.With([](FakeWorkerService::State& state) { state.holds_acknowledgements = false; });
    if (running_.valid()) running_.wait();
  }

  // Starts a worker whose packs call `run`.
  void StartWorker(std::function<absl::Status(const v1::Lease&, PackSession&)> run) {
    options_.server = server_.address();
    options_.worker_id = "test-worker";
    options_.session.sender.backoff = {.initial = absl::Milliseconds(2),
                                       .maximum = absl::Milliseconds(20)};
    runner_ = std::make_unique<FakeRunner>(std::move(run));
    loop_ = std::make_unique<WorkerLoop>(options_, *runner_);
    running_ = std::async(std::launch::async, [this] { return loop_->Run(); });
  }

  void OfferLease(const v1::Lease& lease) {
    server_.With([&](FakeWorkerService::State& state) { state.leases.push_back(lease); });
  }

  // Drains and returns the result of Run; DEADLINE_EXCEEDED if Run does not return within 30 s.
  absl::Status Stop() {
    loop_->Drain();
    return Join();
  }
  absl::Status Join() {
    if (running_.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      return absl::DeadlineExceededError("Run does not return");
    }
    return running_.get();
  }

  // Expects the trial's events to be steps 1 to `steps` and an outcome, each once and in order.
  void ExpectPointsAndOutcome(const std::string& trial, int64_t steps) {
    server_.With([&](FakeWorkerService::State& state) {
      const std::vector<v1::Event>& events = state.events[trial];
      ASSERT_EQ(events.size(), static_cast<size_t>(steps) + 1);
      for (int64_t i = 0; i < steps; ++i) {
        EXPECT_EQ(events[i].sequence(), i + 1);
        EXPECT_EQ(events[i].step(), i + 1);
        EXPECT_TRUE(events[i].has_training_points());
      }
      EXPECT_TRUE(events.back().has_outcome());
    });
  }

  FakeWorkerService server_;
  WorkerLoop::Options options_;
  std::unique_ptr<FakeRunner> runner_;
  std::unique_ptr<WorkerLoop> loop_;
  std::future<absl::Status> running_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_TESTING_CONNECTION_FIXTURE_H_
