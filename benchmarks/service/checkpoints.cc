// Measures what a checkpoint costs the server: CPU time and traffic. Each trial stores its
// checkpoints and ends; the figures are those of the whole trial, divided by its checkpoints. The
// server keeps the newest one and deletes the others, which is part of the cost.
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "benchmarks/service/server_process.h"
#include "rpc/transport.h"
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

void Main(const std::string& program, const std::vector<std::string>& flags,
          const std::vector<int64_t>& sizes, int trials, int count) {
  const int checkpoints = trials * count;
  std::printf("%12s %14s %16s %10s\n", "bytes", "CPU ms each", "traffic kB each", "a second");
  for (const int64_t bytes : sizes) {
    const ServerProcess server(program, flags);
    Storer storer(static_cast<size_t>(bytes), count);
    SubmitTrials(server, "checkpoints", trials);
    worker::Connection::Options options;
    options.server = server.address();
    options.worker_id = "checkpoints";
    options.exit_when_idle = absl::Seconds(2);  // its connection is still open when ss looks
    // Without the server's start.
    double cpu = -server.CpuSeconds();
    int64_t traffic = -server.TrafficBytes();
    const absl::Time start = absl::Now();
    {
      worker::Connection connection(options, storer);
      if (const absl::Status status = connection.Run(); !status.ok()) Fail(status.ToString());
      cpu += server.CpuSeconds();
      traffic += server.TrafficBytes();
    }
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start) - 2;
    std::printf("%12lld %14.2f %16.1f %10.1f\n", static_cast<long long>(bytes),
                1000 * cpu / checkpoints, static_cast<double>(traffic) / 1000 / checkpoints,
                checkpoints / seconds);
  }
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) {
  lengthwise::rpc::KeepGrpcInitialized();
  std::string server = "server/lengthwise_server", artifacts, endpoint;
  int trials = 50, count = 1;
  std::vector<int64_t> sizes = {1 << 10, 1 << 20, 32 << 20};
  CLI::App app("Measures what a checkpoint costs the server.");
  app.add_option("--server_program", server, "Path of lengthwise_server")->capture_default_str();
  app.add_option("--artifacts", artifacts, "The server's --artifacts");
  app.add_option("--s3_endpoint", endpoint, "The server's --s3_endpoint");
  app.add_option("--trials", trials, "Trials for each size")->capture_default_str();
  app.add_option("--checkpoints", count, "Checkpoints of each trial")->capture_default_str();
  app.add_option("--bytes", sizes, "Sizes of checkpoints, at least 1000 bytes")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::vector<std::string> flags;
  if (!artifacts.empty()) {
    flags = {"--artifacts", artifacts, "--take_over_artifacts"};
    if (!endpoint.empty()) flags.insert(flags.end(), {"--s3_endpoint", endpoint});
  }
  lengthwise::benchmarks::Main(server, flags, sizes, trials, count);
}
