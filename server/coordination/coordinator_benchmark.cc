// How much the coordinator takes, everything durable: points stored, trials dispatched to finished,
// submissions. In one process, without gRPC.
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "server/coordination/test_coordinator.h"

namespace lengthwise::server {
namespace {

std::unique_ptr<TestCoordinator> Start(const std::string& name) {
  const std::string directory =
      (std::filesystem::temp_directory_path() / absl::StrCat("lengthwise_benchmark_", name))
          .string();
  std::filesystem::remove_all(directory);
  auto coordinator = std::make_unique<TestCoordinator>(directory);
  if (!coordinator->Open().ok() || !coordinator->Register("w", 1000).ok()) abort();
  return coordinator;
}

// Batches of 100 points, `window` of them unacknowledged.
void BM_StorePoints(benchmark::State& state) {
  const int64_t window = state.range(0);
  constexpr int kPoints = 100;
  std::unique_ptr<TestCoordinator> coordinator = Start("points");
  coordinator->Create("sort", 1, 1);
  const v1::Lease lease = coordinator->Acquire("w");
  int64_t sequence = 0;
  for (auto _ : state) {
    std::vector<std::future<bool>> answers;
    for (int64_t i = 0; i < window; ++i) {
      v1::StreamEventsRequest request;
      request.set_lease_id(lease.lease_id());
      request.set_fencing_token(lease.fencing_token());
      ++sequence;
      v1::Event event = PointsEvent(lease, 0, sequence, sequence * kPoints);
      v1::TrainingPoints& points = *event.mutable_training_points();
      points.Clear();
      for (int64_t step = (sequence - 1) * kPoints + 1; step <= sequence * kPoints; ++step) {
        points.add_steps(step);
        points.add_losses(1.0f / static_cast<float>(step));
        points.add_accuracies(0.5f);
        points.add_gradient_norms(2.0f);
        points.add_lengths(7);
      }
      *request.add_events() = std::move(event);
      auto answer = std::make_shared<std::promise<bool>>();
      answers.push_back(answer->get_future());
      (*coordinator)->StoreEvents(std::move(request), [answer](const auto& response) {
        answer->set_value(response.ok() && response->refusal() == 0);
      });
    }
    for (std::future<bool>& answer : answers) {
      if (!answer.get()) state.SkipWithError("not stored");
    }
  }
  state.SetItemsProcessed(state.iterations() * window * kPoints);
}
BENCHMARK(BM_StorePoints)->Arg(1)->Arg(16)->Arg(128)->UseRealTime();

// Empty trials from a queue of 10,000: leased one by one by 32 workers at once, each with one
// outcome.
void BM_DispatchTrials(benchmark::State& state) {
  constexpr int kWorkers = 32;
  std::unique_ptr<TestCoordinator> coordinator = Start("dispatch");
  for (int i = 0; i < kWorkers; ++i) coordinator->Register(absl::StrCat("w", i)).IgnoreError();
  int64_t left = 0;
  for (auto _ : state) {
    if (left < kWorkers) {
      state.PauseTiming();
      coordinator->Create("sort", 1, 10'000);
      left += 10'000;
      state.ResumeTiming();
    }
    std::vector<std::future<bool>> answers;
    for (int i = 0; i < kWorkers; ++i) {
      auto answer = std::make_shared<std::promise<bool>>();
      answers.push_back(answer->get_future());
      v1::AcquireLeaseRequest acquire;
      acquire.set_worker_id(absl::StrCat("w", i));
      (*coordinator)->AcquireLease(acquire, [&coordinator, answer](const auto& acquired) {
        if (!acquired.ok() || !acquired->has_lease()) return answer->set_value(false);
        v1::StreamEventsRequest request;
        request.set_lease_id(acquired->lease().lease_id());
        request.set_fencing_token(acquired->lease().fencing_token());
        *request.add_events() = OutcomeEvent(acquired->lease(), 0, 1, 0, v1::Outcome::COMPLETED);
        (*coordinator)->StoreEvents(std::move(request), [answer](const auto& response) {
          answer->set_value(response.ok() && response->refusal() == 0);
        });
      });
    }
    for (std::future<bool>& answer : answers) {
      if (!answer.get()) state.SkipWithError("not dispatched");
    }
    left -= kWorkers;
  }
  state.SetItemsProcessed(state.iterations() * kWorkers);
}
BENCHMARK(BM_DispatchTrials)->UseRealTime();

// One experiment of so many trials in packs of 30, acknowledged and durable. The grid's resolution
// is the tests' small one.
void BM_Submit(benchmark::State& state) {
  const int packs = static_cast<int>(state.range(0)) / 30;
  std::unique_ptr<TestCoordinator> coordinator = Start("submit");
  for (auto _ : state) coordinator->Create("sort", packs, 30);
  state.SetItemsProcessed(state.iterations() * packs * 30);
}
BENCHMARK(BM_Submit)->Arg(330)->Arg(4950)->Arg(99'990)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace lengthwise::server

BENCHMARK_MAIN();
