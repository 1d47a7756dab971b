// Measures the server through gRPC, with every acknowledgement durable: points of loss curves,
// trials from queue to outcome, and submissions; and the time to list and summarize 10,000 trials.
// README.md in this folder explains each figure.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/service/server_process.h"
#include "proto/experiment_service.grpc.pb.h"
#include "rpc/transport.h"
#include "worker/connection/worker_loop.h"
#include "worker/pack_session.h"

namespace lengthwise::benchmarks {
namespace {

using worker::PackSession;

struct Flags {
  std::string server;
  int points = 2'000'000;
  int workers = 2;
  int trials = 10'000;
  int dispatchers = 16;
  int submissions = 50;
};

// Runs packs with a given function instead of training.
class Runner final : public worker::PackRunner {
 public:
  using Run_ = std::function<void(const v1::Lease&, PackSession&)>;
  Runner(int32_t max_pack_size, Run_ run) : max_pack_size_(max_pack_size), run_(std::move(run)) {}
  absl::Status Run(const v1::Lease& lease, PackSession& session) override {
    run_(lease, session);
    return absl::OkStatus();
  }
  v1::Provenance provenance() const override { return {}; }
  int32_t max_pack_size() const override { return max_pack_size_; }

 private:
  const int32_t max_pack_size_;
  const Run_ run_;
};

// The end of a trial at a step: its model and its outcome.
void Complete(PackSession& session, int64_t trial, int64_t step) {
  session.EmitCheckpoint(trial, step, "model");
  v1::Event event;
  event.set_step(step);
  event.mutable_outcome()->set_kind(v1::Outcome::COMPLETED);
  session.Emit(trial, std::move(event));
}

// A worker without a lease for this long ends. Longer than any group of events of a busy server.
constexpr absl::Duration kIdle = absl::Seconds(1);

// Runs workers until no lease is left. Returns the seconds since the first lease.
double RunWorkers(const ServerProcess& server, int workers, int32_t pack_size,
                  const Runner::Run_& run) {
  std::atomic<int64_t> first_nanos = 0, last_nanos = 0;
  const auto now = [] { return absl::ToUnixNanos(absl::Now()); };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(workers));
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([&, i] {
      Runner runner(pack_size, [&](const v1::Lease& lease, PackSession& session) {
        int64_t none = 0;
        first_nanos.compare_exchange_strong(none, now());
        run(lease, session);
      });
      worker::WorkerLoop::Options options;
      options.server = server.address();
      options.worker_id = absl::StrCat("load-worker-", i);
      options.exit_when_idle = kIdle;
      worker::WorkerLoop loop(options, runner);
      if (const absl::Status status = loop.Run(); !status.ok()) Fail(status.ToString());
      last_nanos = std::max<int64_t>(last_nanos, now());
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Excludes the last worker's wait for another lease.
  return static_cast<double>(last_nanos - first_nanos) * 1e-9 - absl::ToDoubleSeconds(kIdle);
}

double SecondsOf(const std::function<void()>& work) {
  const absl::Time start = absl::Now();
  work();
  return absl::ToDoubleSeconds(absl::Now() - start);
}

template <typename Request, typename Response>
Response Call(v1::ExperimentService::Stub& stub,
              grpc::Status (v1::ExperimentService::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
              const Request& request) {
  grpc::ClientContext context;
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) Fail(status.error_message());
  return response;
}

// Stores points in events of `packing` points, then reads back and counts all of them.
void MeasurePoints(const Flags& flags, int packing) {
  ServerProcess server(flags.server);
  const std::string experiment = SubmitTrials(server, "points", flags.workers);
  const int64_t per_trial = flags.points / flags.workers;
  const double seconds =
      RunWorkers(server, flags.workers, 1, [&](const v1::Lease& lease, PackSession& session) {
        for (int trial = 0; trial < lease.trials_size(); ++trial) {
          for (int64_t step = 0; step < per_trial;) {
            v1::Event event;
            v1::TrainingPoints& points = *event.mutable_training_points();
            for (int i = 0; i < packing && step < per_trial; ++i) {
              points.add_steps(++step);
              points.add_losses(1.0f / static_cast<float>(step));
              points.add_accuracies(0.5f);
              points.add_gradient_norms(2.0f);
              points.add_lengths(static_cast<int32_t>(step % 40 + 1));
            }
            event.set_step(step);
            session.Emit(trial, std::move(event));
          }
          Complete(session, trial, per_trial);
        }
      });
  const auto stub = v1::ExperimentService::NewStub(server.Connect());
  grpc::ClientContext context;
  v1::WatchExperimentRequest watch;
  watch.set_name(experiment);
  const auto reader = stub->WatchExperiment(&context, watch);
  int64_t read = 0;
  int trials_ended = 0;
  for (v1::WatchExperimentResponse response; reader->Read(&response);) {
    for (const v1::Event& event : response.events()) {
      read += event.training_points().steps_size();
      trials_ended += event.state_change().to() == v1::SUCCEEDED;
    }
  }
  const int64_t sent = per_trial * flags.workers;
  if (!reader->Finish().ok() || read != sent || trials_ended != flags.workers) {
    Fail(absl::StrCat("of ", sent, " points ", read, " were read back"));
  }
  std::printf(
      "points stored, %3d an event             %12.0f /s   (%lld in %.1f s, all read back)\n",
      packing, static_cast<double>(sent) / seconds, static_cast<long long>(sent), seconds);
}

// Runs trials that only store a model and accuracies at 20 lengths, in packs of `pack_size`.
void RunTrials(const Flags& flags, const ServerProcess& server, int pack_size) {
  const std::string experiment = SubmitTrials(server, "empty", flags.trials);
  const double seconds = RunWorkers(
      server, flags.dispatchers, pack_size, [](const v1::Lease& lease, PackSession& session) {
        for (int trial = 0; trial < lease.trials_size(); ++trial) {
          v1::Event event;
          v1::LengthAccuracies& accuracies = *event.mutable_length_accuracies();
          accuracies.set_final(true);
          accuracies.set_sequences(8);
          for (int length = 1; length <= 20; ++length) {
            accuracies.add_lengths(length);
            accuracies.add_accuracies(1.0 / length);
            accuracies.add_losses(0.1 * length);
          }
          event.set_step(1);
          session.Emit(trial, std::move(event));
          Complete(session, trial, 1);
        }
      });
  const auto stub = v1::ExperimentService::NewStub(server.Connect());
  v1::GetExperimentRequest get;
  get.set_name(experiment);
  const v1::Experiment ended = Call(*stub, &v1::ExperimentService::Stub::GetExperiment, get);
  if (ended.trials().succeeded() != flags.trials) {
    Fail(absl::StrCat("of ", flags.trials, " trials ", ended.trials().succeeded(), " succeeded"));
  }
  std::printf(
      "empty trials to their outcome, packs of %-2d %9.0f /s   (%d in %.1f s, %d workers)\n",
      pack_size, flags.trials / seconds, flags.trials, seconds, flags.dispatchers);
}

void MeasureReads(const Flags& flags, const ServerProcess& server) {
  const auto stub = v1::ExperimentService::NewStub(server.Connect());
  const std::string experiment = "experiments/empty-1";
  int64_t listed = 0;
  const double list = SecondsOf([&] {
    v1::ListTrialsRequest request;
    request.set_parent(experiment);
    request.set_page_size(1000);
    do {
      const auto page = Call(*stub, &v1::ExperimentService::Stub::ListTrials, request);
      listed += page.trials_size();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
  });
  if (listed != flags.trials) Fail("not all trials were listed");
  std::printf("list %d trials, pages of 1,000       %12.1f ms\n", flags.trials, 1e3 * list);
  v1::SummarizeExperimentRequest summarize;
  summarize.set_name(experiment);
  for (const char* time : {"the first time ", "again          "}) {
    const double seconds = SecondsOf([&] {
      const auto summary =
          Call(*stub, &v1::ExperimentService::Stub::SummarizeExperiment, summarize);
      if (summary.cells_size() != 1 || summary.cells(0).trials().succeeded() != flags.trials) {
        Fail("not all trials are in the summary");
      }
    });
    std::printf("results of them, summed up, %s %9.1f ms\n", time, 1e3 * seconds);
  }
  const double accuracies = SecondsOf([&] {
    v1::QueryLengthAccuraciesRequest request;
    request.set_name(experiment);
    const auto response = Call(*stub, &v1::ExperimentService::Stub::QueryLengthAccuracies, request);
    if (response.evaluations_size() != flags.trials) Fail("not all accuracies are there");
  });
  std::printf("accuracies of each at 20 lengths        %12.1f ms\n", 1e3 * accuracies);
}

// 330 trials: 11 encodings, 3 learning rates, 10 seeds.
void MeasureSubmissions(const Flags& flags) {
  ServerProcess server(flags.server);
  const auto stub = v1::ExperimentService::NewStub(server.Connect());
  v1::CreateExperimentRequest request;
  request.mutable_specification_text()->set_format(v1::SpecificationText::YAML);
  request.mutable_specification_text()->set_text(
      "name: sweep\n"
      "tasks: bucket_sort\n"
      "encodings: [none, sin_cos, learned, rope, alibi, relative,\n"
      "            {name: sin_cos, randomized: true}, {name: learned, randomized: true},\n"
      "            {name: rope, randomized: true}, {name: alibi, randomized: true},\n"
      "            {name: relative, randomized: true}]\n"
      "learning_rates: [0.0001, 0.0003, 0.001]\n"
      "seeds: 0..9\n"
      "training: {steps: 1000, lengths: {min: 1, max: 40}}\n"
      "evaluation: {lengths: [\"10..100 step 10\"], sequences: 100}\n");
  std::vector<double> seconds;
  seconds.reserve(static_cast<size_t>(flags.submissions));
  const double cpu = server.CpuSeconds();
  for (int i = 0; i < flags.submissions; ++i) {
    seconds.push_back(SecondsOf([&] {
      const auto response = Call(*stub, &v1::ExperimentService::Stub::CreateExperiment, request);
      if (response.trial_count() != 330) {
        Fail(absl::StrCat("expected 330 trials, got ", response.trial_count()));
      }
    }));
  }
  const double median = Quantile(seconds, 0.5);
  const double longest = Quantile(seconds, 1);
  std::printf(
      "submit 330 trials, acknowledged durable %12.1f ms   (median of %d; longest %.1f; CPU time "
      "of "
      "the server %.1f each)\n",
      1e3 * median, flags.submissions, 1e3 * longest,
      1e3 * (server.CpuSeconds() - cpu) / flags.submissions);
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Measures a server through gRPC, on loopback. Starts and stops its own server.",
               "throughput");
  app.add_option("--server_program", flags.server, "Path of lengthwise_server")->required();
  app.add_option("--points", flags.points)
      ->check(CLI::Range(1'000, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--workers", flags.workers, "Workers that send points")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--trials", flags.trials)->check(CLI::Range(100, 100'000))->capture_default_str();
  app.add_option("--dispatchers", flags.dispatchers, "Workers that run empty trials")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--submissions", flags.submissions)
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  rpc::KeepGrpcInitialized();
  // Silences the workers' log, which has a line for each lease.
  if (freopen("/dev/null", "w", stderr) == nullptr) return 1;
  MeasurePoints(flags, 100);
  MeasurePoints(flags, 10);
  {
    // Deleted together: within a minute after thousands of files were deleted, ext4 without a
    // journal takes ten times as long to make one.
    ServerProcess packs(flags.server), single(flags.server);
    RunTrials(flags, packs, 30);
    RunTrials(flags, single, 1);
    MeasureReads(flags, single);
  }
  MeasureSubmissions(flags);
  return 0;
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) { return lengthwise::benchmarks::Main(argc, argv); }
