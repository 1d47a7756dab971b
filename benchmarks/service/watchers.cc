// Measures 1,000 watchers on 50 connections: the delay until all have an event, and the server's
// cost, with a hundred watchers that never read. README.md in this folder explains each figure.
// Fails if a watcher missed an event or the server took too much memory.
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/service/server_process.h"
#include "benchmarks/service/worker_stub.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/timestamps.h"
#include "rpc/transport.h"

namespace lengthwise::benchmarks {
namespace {

struct Flags {
  std::string server;
  int watchers = 1000;
  int channels = 50;
  int silent = 100;
  double rate = 10;
  double seconds = 15;
  int events = 360'000;
  int memory = 300;
};

// Totals over all watchers.
struct Tally {
  std::mutex mutex;
  std::vector<double> latencies;  // in seconds, only while `measuring`
  std::atomic<bool> measuring = false;
  std::atomic<int> caught_up = 0;
  std::atomic<int64_t> events = 0;
  std::atomic<int> gaps = 0;
};

class Watcher final : public grpc::ClientReadReactor<v1::WatchExperimentResponse> {
 public:
  // A watcher with `reads` false receives only what its connection buffers.
  Watcher(v1::ExperimentService::Stub& stub, const std::string& experiment, bool reads,
          Tally& tally)
      : tally_(tally) {
    request_.set_name(experiment);
    request_.set_follow(true);
    stub.async()->WatchExperiment(&context_, &request_, this);
    if (reads) StartRead(&response_);
    AddHold();  // keeps the call open until Cancel
    StartCall();
  }
  void Cancel() {
    context_.TryCancel();
    RemoveHold();
  }
  void Wait() {
    while (!done_.load()) absl::SleepFor(absl::Milliseconds(1));
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    const absl::Time now = absl::Now();
    if (response_.events_size() > 0) {
      tally_.events += response_.events_size();
      // Sequence numbers of the only trial's only attempt increase by one.
      std::vector<double> latencies;
      for (const v1::Event& event : response_.events()) {
        if (event.sequence() == 0) continue;
        if (last_ > 0 && event.sequence() != last_ + 1) ++tally_.gaps;
        last_ = event.sequence();
        latencies.push_back(absl::ToDoubleSeconds(now - ToTime(event.time())));
      }
      if (tally_.measuring) {
        const std::lock_guard<std::mutex> lock(tally_.mutex);
        tally_.latencies.insert(tally_.latencies.end(), latencies.begin(), latencies.end());
      }
    }
    if (response_.caught_up()) ++tally_.caught_up;
    StartRead(&response_);
  }
  void OnDone(const grpc::Status&) override { done_ = true; }

 private:
  Tally& tally_;
  v1::WatchExperimentRequest request_;
  v1::WatchExperimentResponse response_;
  grpc::ClientContext context_;
  int64_t last_ = 0;
  std::atomic<bool> done_ = false;
};

class Watchers {
 public:
  Watchers(const ServerProcess& server, const std::string& experiment, const Flags& flags,
           int silent) {
    for (int i = 0; i < flags.channels; ++i) {
      stubs_.push_back(v1::ExperimentService::NewStub(server.Connect()));
    }
    for (int i = 0; i < flags.watchers; ++i) {
      watchers_.push_back(std::make_unique<Watcher>(
          *stubs_[static_cast<size_t>(i % flags.channels)], experiment, i >= silent, tally_));
    }
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (tally_.caught_up < flags.watchers - silent) {
      if (absl::Now() > deadline) Fail("the watchers did not catch up with the history");
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
  ~Watchers() {
    for (const auto& watcher : watchers_) watcher->Cancel();
    for (const auto& watcher : watchers_) watcher->Wait();
  }
  Tally& tally() { return tally_; }

 private:
  Tally tally_;
  std::vector<std::unique_ptr<v1::ExperimentService::Stub>> stubs_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
};

double Mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void FailOnGaps(const Tally& tally) {
  if (tally.gaps > 0)
    Fail(absl::StrCat(tally.gaps.load(), " gaps in the events that watchers received"));
}

void MeasureLatency(const Flags& flags) {
  ServerProcess server(flags.server);
  const std::string experiment = SubmitTrials(server, "watched", 1);
  WorkerStub worker(server, "load-worker");
  Watchers watchers(server, experiment, flags, 0);
  Tally& tally = watchers.tally();
  grpc::ClientContext context;
  const auto stream = worker.stub().StreamEvents(&context);
  std::thread acknowledgements([&] {
    for (v1::StreamEventsResponse response; stream->Read(&response);) {
    }
  });
  const int warm_up = static_cast<int>(flags.rate * 2);
  const int count = static_cast<int>(flags.rate * flags.seconds);
  const absl::Duration interval = absl::Seconds(1 / flags.rate);
  absl::Time next = absl::Now();
  double cpu = 0;
  int64_t expected = 0;
  for (int i = 0; i < warm_up + count; ++i) {
    if (i == warm_up) {
      absl::SleepFor(absl::Milliseconds(500));
      next = absl::Now();
      tally.measuring = true;
      cpu = server.CpuSeconds();
      expected = tally.events + int64_t{flags.watchers} * count;
    }
    if (i % static_cast<int>(flags.rate) == 0) worker.Heartbeat();
    absl::SleepFor(next - absl::Now());
    next += interval;
    v1::StreamEventsRequest request = worker.Request();
    *request.add_events() = worker.NextEvent();
    stream->Write(request);
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (tally.events < expected && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  cpu = server.CpuSeconds() - cpu;
  tally.measuring = false;
  stream->WritesDone();
  stream->Finish();
  acknowledgements.join();
  const std::lock_guard<std::mutex> lock(tally.mutex);
  std::vector<double>& latencies = tally.latencies;
  std::printf(
      "%d watchers over %d channels, %g events/s for %g s: %zu of %lld deliveries, %d gaps\n",
      flags.watchers, flags.channels, flags.rate, flags.seconds, latencies.size(),
      static_cast<long long>(flags.watchers) * count, tally.gaps.load());
  const auto milliseconds = [&](double fraction) { return 1e3 * Quantile(latencies, fraction); };
  std::printf(
      "  from the worker to a watcher: median %.1f ms, 99th percentile %.1f ms, "
      "longest %.1f ms\n",
      milliseconds(0.5), milliseconds(0.99), milliseconds(1));
  std::printf("  the server used %.0f %% of one core\n", 100 * cpu / flags.seconds);
  FailOnGaps(tally);
  if (tally.events < expected) {
    Fail(absl::StrCat("events did not reach all watchers within a minute: ",
                      expected - tally.events, " deliveries are missing"));
  }
}

void MeasureMemory(const Flags& flags) {
  ServerProcess server(flags.server);
  const std::string experiment = SubmitTrials(server, "flooded", 1);
  WorkerStub worker(server, "load-worker");
  const int64_t before = server.ResidentBytes();
  Watchers watchers(server, experiment, flags, flags.silent);
  const int64_t idle = server.ResidentBytes();
  grpc::ClientContext context;
  const auto stream = worker.stub().StreamEvents(&context);
  std::atomic<int64_t> acknowledged = 0;
  std::thread acknowledgements([&] {
    for (v1::StreamEventsResponse response; stream->Read(&response);) {
      if (response.refusal() != 0) Fail("refused: " + response.detail());
      acknowledged = response.acknowledged_sequence();
    }
  });
  constexpr int kBatch = 240;
  const absl::Time start = absl::Now();
  absl::Time heartbeat = start;
  for (int sent = 0; sent < flags.events;) {
    v1::StreamEventsRequest request = worker.Request();
    for (int i = 0; i < kBatch && sent < flags.events; ++i, ++sent) {
      *request.add_events() = worker.NextEvent();
    }
    if (!stream->Write(request)) Fail("the stream is broken");
    if (absl::Now() - heartbeat > absl::Seconds(1)) {
      heartbeat = absl::Now();
      worker.Heartbeat();
    }
  }
  while (acknowledged < flags.events) absl::SleepFor(absl::Milliseconds(5));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  absl::SleepFor(absl::Seconds(3));  // lets the watchers read on
  std::printf("%d watchers, %d of which never read, %d events written at full speed in %.1f s\n",
              flags.watchers, flags.silent, flags.events, seconds);
  std::printf(
      "  the server's memory: %.0f MiB without watchers, %.0f MiB with them, at most "
      "%.0f MiB, %.0f MiB in the end\n",
      Mebibytes(before), Mebibytes(idle), Mebibytes(server.MostResidentBytes()),
      Mebibytes(server.ResidentBytes()));
  std::printf("  events given to the watchers that read: %lld, %d gaps\n",
              static_cast<long long>(watchers.tally().events), watchers.tally().gaps.load());
  stream->WritesDone();
  stream->Finish();
  acknowledgements.join();
  FailOnGaps(watchers.tally());
  const int64_t most = server.MostResidentBytes();
  if (flags.memory > 0 && most > int64_t{flags.memory} * 1'000'000) {
    Fail(absl::StrCat("the server took ", most, " bytes, more than ", flags.memory, " MB"));
  }
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Measures a server with many watchers, on loopback. Starts and stops its own server.",
      "watchers");
  app.add_option("--server_program", flags.server, "Path of lengthwise_server")->required();
  app.add_option("--watchers", flags.watchers)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--channels", flags.channels)->check(CLI::Range(1, 1'000))->capture_default_str();
  app.add_option("--silent", flags.silent, "Watchers that never read, in the second part")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--rate", flags.rate, "Events per second, in the first part")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "Duration of the first part; 0 skips it")
      ->check(CLI::Range(0, 600))
      ->capture_default_str();
  app.add_option("--events", flags.events, "Events of the second part; 0 skips it")
      ->check(CLI::Range(0, 10'000'000))
      ->capture_default_str();
  app.add_option("--memory", flags.memory,
                 "Memory limit of the server in the second part, MB; 0: none")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  rpc::KeepGrpcInitialized();
  if (flags.seconds > 0) MeasureLatency(flags);
  if (flags.events > 0) MeasureMemory(flags);
  return 0;
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) { return lengthwise::benchmarks::Main(argc, argv); }
