// Measures what a checkpoint costs the server: CPU time and traffic. Each trial stores its
// checkpoints and ends; the figures are those of the whole trial, divided by its checkpoints. The
// server keeps the newest one and deletes the others, which is part of the cost. What the server
// does without checkpoints, with one idle worker, is measured first and stated separately.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmarks/service/server_process.h"
#include "rpc/transport.h"
#include "server/storage/testing/s3_test_store.h"
#include "worker/connection/worker_loop.h"
#include "worker/pack_session.h"

namespace lengthwise::benchmarks {
namespace {

// Stores `count` models of `bytes` bytes for each trial.
class Storer final : public worker::PackRunner {
 public:
  Storer(size_t bytes, int count) : bytes_(bytes), count_(count) {}
  absl::Status Run(const v1::Lease& lease, worker::PackSession& session) override {
    for (int trial = 0; trial < lease.trials_size(); ++trial) {
      for (int step = 1; step <= count_; ++step) {
        std::string model(bytes_, 'm');
        // Models differ.
        const std::string name = absl::StrCat(lease.trials(trial).trial(), " ", step);
        model.replace(0, name.size(), name);
        session.EmitCheckpoint(trial, step, std::move(model));
      }
      v1::Event event;
      event.set_step(count_);
      event.mutable_outcome()->set_kind(v1::Outcome::COMPLETED);
      session.Emit(trial, std::move(event));
    }
    return absl::OkStatus();
  }
  v1::Provenance provenance() const override { return {}; }
  int32_t max_pack_size() const override { return 1; }

 private:
  const size_t bytes_;
  const int count_;
};

// What the server spent while a worker was connected.
struct Spent {
  double seconds = 0;
  double cpu = 0;
  int64_t traffic = 0;
};

// Runs a worker until the queue was empty for `idle`. Its connection is still open when ss looks.
Spent RunWorker(const ServerProcess& server, Storer& storer, absl::Duration idle) {
  worker::WorkerLoop::Options options;
  options.server = server.address();
  options.worker_id = "checkpoints";
  options.exit_when_idle = idle;
  Spent spent = {.cpu = -server.CpuSeconds(), .traffic = -server.TrafficBytes()};
  const absl::Time start = absl::Now();
  worker::WorkerLoop loop(options, storer);
  if (const absl::Status status = loop.Run(); !status.ok()) Fail(status.ToString());
  spent.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  spent.cpu += server.CpuSeconds();
  spent.traffic += server.TrafficBytes();
  return spent;
}

void Main(const std::string& program, const std::vector<std::string>& flags,
          const std::vector<int64_t>& sizes, int trials, int count) {
  const int checkpoints = trials * count;
  std::printf("%12s %14s %20s %16s %10s\n", "bytes", "CPU ms each", "CPU ms/s when idle",
              "traffic kB each", "a second");
  for (const int64_t bytes : sizes) {
    const ServerProcess server(program, flags);
    Storer storer(static_cast<size_t>(bytes), count);
    const Spent idle = RunWorker(server, storer, absl::Seconds(10));
    SubmitTrials(server, "checkpoints", trials);
    const Spent spent = RunWorker(server, storer, absl::Seconds(2));
    std::printf("%12lld %14.2f %20.2f %16.1f %10.1f\n", static_cast<long long>(bytes),
                1000 * (spent.cpu - idle.cpu / idle.seconds * spent.seconds) / checkpoints,
                1000 * idle.cpu / idle.seconds,
                static_cast<double>(spent.traffic) / 1000 / checkpoints,
                checkpoints / (spent.seconds - 2));
  }
}

// Flags for a new place in the store that LENGTHWISE_TEST_S3 names (tests/object_store).
std::vector<std::string> TestStoreFlags() {
  const std::optional<server::S3Options> store = server::S3TestStore();
  if (!store.has_value()) Fail("no store; run this under tests/object_store/with_store.sh");
  setenv("AWS_ACCESS_KEY_ID", store->credentials.access_key_id.c_str(), 1);
  setenv("AWS_SECRET_ACCESS_KEY", store->credentials.secret_access_key.c_str(), 1);
  return {"--artifacts", server::NewS3Place(), "--take_over_artifacts", "--s3_endpoint",
          store->endpoint};
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) {
  lengthwise::rpc::KeepGrpcInitialized();
  std::string server = "server/lengthwise_server", artifacts, endpoint;
  bool test_store = false;
  int trials = 50, count = 1;
  std::vector<int64_t> sizes = {1 << 10, 1 << 20, 32 << 20};
  CLI::App app("Measures what a checkpoint costs the server.");
  app.add_option("--server_program", server, "Path of lengthwise_server")->capture_default_str();
  auto* artifacts_flag = app.add_option("--artifacts", artifacts, "The server's --artifacts");
  app.add_option("--s3_endpoint", endpoint, "The server's --s3_endpoint")->needs(artifacts_flag);
  app.add_flag("--test_store", test_store, "Uses the object store of tests/object_store")
      ->excludes(artifacts_flag);
  app.add_option("--trials", trials, "Trials for each size")->capture_default_str();
  app.add_option("--checkpoints", count, "Checkpoints of each trial")->capture_default_str();
  app.add_option("--bytes", sizes, "Sizes of checkpoints, at least 1000 bytes")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::vector<std::string> flags;
  if (test_store) flags = lengthwise::benchmarks::TestStoreFlags();
  if (!artifacts.empty()) flags = {"--artifacts", artifacts, "--take_over_artifacts"};
  if (!endpoint.empty()) flags.insert(flags.end(), {"--s3_endpoint", endpoint});
  lengthwise::benchmarks::Main(server, flags, sizes, trials, count);
}
