// Cost of the core with durable commits: points stored, trials dispatched until finished,
// submissions, and summaries. In one process, without gRPC.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "benchmark/benchmark.h"
#include "server/coordination/testing/test_coordinator.h"
#include "server/storage/sqlite_connection.h"

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

// Batches of 100 points, with `window` batches unacknowledged.
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
      PostEvents(**coordinator, request, "anonymous", [answer](const auto& response) {
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

// Empty trials from a queue of 10,000, leased one by one by 32 concurrent workers, each with one
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
      v1::SynchronizeRequest acquire = coordinator->CallOf(absl::StrCat("w", i));
      acquire.set_wants_lease(true);
      const auto take = [&coordinator, answer](const auto& acquired) {
        if (!acquired.ok() || !acquired->has_lease()) return answer->set_value(false);
        v1::StreamEventsRequest request;
        request.set_lease_id(acquired->lease().lease_id());
        request.set_fencing_token(acquired->lease().fencing_token());
        *request.add_events() =
            OutcomeEvent(acquired->lease(), 0, 1, 0, v1::Outcome::FAILED_PERMANENTLY);
        PostEvents(**coordinator, request, "anonymous", [answer](const auto& response) {
          answer->set_value(response.ok() && response->refusal() == 0);
        });
      };
      PostCall(**coordinator, acquire, "anonymous", take);
    }
    for (std::future<bool>& answer : answers) {
      if (!answer.get()) state.SkipWithError("not dispatched");
    }
    left -= kWorkers;
  }
  state.SetItemsProcessed(state.iterations() * kWorkers);
}
BENCHMARK(BM_DispatchTrials)->UseRealTime();

// One experiment of this many trials in packs of 30, acknowledged and durable. With the tests'
// simple resolver.
void BM_Submit(benchmark::State& state) {
  const int packs = static_cast<int>(state.range(0)) / 30;
  std::unique_ptr<TestCoordinator> coordinator = Start("submit");
  for (auto _ : state) coordinator->Create("sort", packs, 30);
  state.SetItemsProcessed(state.iterations() * packs * 30);
}
BENCHMARK(BM_Submit)->Arg(330)->Arg(4950)->Arg(99'990)->UseRealTime()->Unit(
    benchmark::kMillisecond);

enum class Change { kCancel, kRetry, kDelete };

// Longest wait for the answer to a heartbeat, in milliseconds, while a command about 100,000 trials
// runs. A deletion lasts until the last row is gone.
void BM_HeartbeatBeside(benchmark::State& state, Change change) {
  std::unique_ptr<TestCoordinator> coordinator = Start("beside");
  const std::string experiment = coordinator->Create("sort", 100, 1000);
  const auto cancel = [&] { return coordinator->Cancel(experiment).status(); };
  const auto retry = [&] { return coordinator->Retry(experiment, {v1::CANCELLED}).status(); };
  const auto remove = [&] {
    const absl::Status status = coordinator->Delete(experiment);
    auto database = SqliteConnection::Open(coordinator->data_dir() + "/lengthwise.db", true);
    const auto is_left = [&] {
      SqliteStatement query = (*database)->Query("SELECT count(*) FROM experiments");
      return query.Step() && query.Int(0) > 0;
    };
    while (status.ok() && is_left()) absl::SleepFor(absl::Milliseconds(5));
    return status;
  };
  if (change != Change::kCancel && !cancel().ok()) abort();
  double longest = 0;
  for (auto _ : state) {
    std::atomic<bool> done = false;
    std::thread worker([&] {
      while (!done) {
        const absl::Time sent = absl::Now();
        coordinator->Heartbeat("w", {}).status().IgnoreError();
        longest = std::max(longest, absl::ToDoubleMilliseconds(absl::Now() - sent));
      }
    });
    const absl::Status status = change == Change::kCancel  ? cancel()
                                : change == Change::kRetry ? retry()
                                                           : remove();
    done = true;
    worker.join();
    if (!status.ok()) abort();
  }
  state.counters["longest_heartbeat_ms"] = longest;
}
BENCHMARK_CAPTURE(BM_HeartbeatBeside, cancellation, Change::kCancel)
    ->UseRealTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_HeartbeatBeside, retry, Change::kRetry)
    ->UseRealTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_HeartbeatBeside, deletion, Change::kDelete)
    ->UseRealTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// 6,000 successful trials: 600 cells of 10 seeds, each with accuracies at 500 lengths. Created
// once; benchmarks only read it.
TestCoordinator& Finished() {
  static TestCoordinator& coordinator = *[] {
    auto made = Start("summary");
    made->Create("sort", 600, 10);
    std::vector<double> accuracies(500);
    for (v1::Lease lease = made->Acquire("w"); lease.trials_size() > 0;
         lease = made->Acquire("w")) {
      for (int trial = 0; trial < lease.trials_size(); ++trial) {
        for (size_t i = 0; i < accuracies.size(); ++i) {
          accuracies[i] = 1 / (1 + 0.001 * static_cast<double>(i * (trial + 1)));
        }
        if (!made->Complete(lease, trial, 10, accuracies)) abort();
      }
    }
    return made.release();
  }();
  return coordinator;
}

// Summarizes it. `cold`: the first query since the server's start.
void BM_Summarize(benchmark::State& state, bool cold, bool omit_lengths) {
  TestCoordinator& coordinator = Finished();
  int64_t bytes = 0;
  coordinator.Summarize("experiments/sort-1").IgnoreError();
  for (auto _ : state) {
    if (cold) {
      state.PauseTiming();
      coordinator.Close();
      if (!coordinator.Open().ok()) abort();
      state.ResumeTiming();
    }
    const auto summary = coordinator.Summarize("experiments/sort-1", omit_lengths);
    if (!summary.ok() || summary->cells_size() != 600 ||
        summary->cells(599).trials().succeeded() != 10) {
      state.SkipWithError("not summed up");
      break;
    }
    bytes = static_cast<int64_t>(summary->ByteSizeLong());
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK_CAPTURE(BM_Summarize, warm, false, false)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Summarize, warm_without_lengths, false, true)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Summarize, cold, true, false)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lengthwise::server

BENCHMARK_MAIN();
