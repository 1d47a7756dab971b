// lengthwise_worker: trains and evaluates packs of trials on one device, for a server.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "command_line/definition.h"
#include "models/kernels/cuda_devices.h"
#include "models/python_network/process.h"
#include "monitoring/families.h"
#include "monitoring/http_endpoint.h"
#include "platform/counted.h"
#include "platform/descriptors.h"
#include "platform/flag_checks.h"
#include "platform/log.h"
#include "platform/service_lifecycle.h"
#include "platform/status_macros.h"
#include "platform/usable_cpus.h"
#include "platform/user_directories.h"
#include "platform/version.h"
#include "rpc/address.h"
#include "rpc/certificates.h"
#include "rpc/channel.h"
#include "rpc/settings.h"
#include "worker/connection/backoff.h"
#include "worker/connection/data_cache.h"
#include "worker/connection/reachability.h"
#include "worker/connection/server_calls.h"
#include "worker/connection/spool.h"
#include "worker/connection/startup.h"
#include "worker/connection/worker_loop.h"
#include "worker/metrics/measurements.h"
#include "worker/metrics/nvml.h"
#include "worker/pack_session.h"
#include "worker/training/device.h"

namespace lengthwise::worker {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// "<cache>/lengthwise/NAME", where <cache> is $XDG_CACHE_HOME or ~/.cache.
std::string Cache(absl::string_view name) {
  return absl::StrCat(platform::CacheDirectory().value_or("./.cache/lengthwise"), "/", name);
}

struct Flags {
  // About reaching the server, by name (rpc/settings.h).
  std::map<std::string, std::string> access;
  PackRunnerOptions runner;
  std::string worker_id;
  // Full name; empty: all experiments.
  std::string experiment;
  int64_t buffer_bytes = Outbox::Options().max_bytes;
  Spool::Options spool = {.directory = Cache("spool")};
  DataCache::Options data = {.directory = Cache("data")};
  std::string exit_when_idle;
  std::string drain_timeout = "5m";
  // Empty: until $SLURM_JOB_END_TIME, or for ever.
  std::string lifetime;
  bool exit_with_parent = false;
  bool allow_python_networks = false;
  std::string python;
  std::string python_device;
  std::string python_limit = "10m";
  std::string log_format = "text";
  std::string log_level = "info";
  // Empty: no metrics.
  std::string metrics_listen;
  bool insecure_metrics = false;
};

// The device's name in a worker id; "auto" becomes the device found.
std::string DeviceInId(const std::string& device, const PackRunner& runner) {
  if (device != "auto") return device;
  return runner.provenance().device() == "cpu" ? "cpu" : "cuda0";
}

// Returns a reader of the GPU's use; null without a GPU or NVML.
Measurements::ReadGpu GpuReader(const std::string& device, const PackRunner& runner) {
  if (runner.provenance().device() == "cpu") return nullptr;
  int index = 0;
  // "cuda" and "auto" are the first.
  if (absl::StartsWith(device, "cuda:") && !absl::SimpleAtoi(device.substr(5), &index)) {
    return nullptr;
  }
  Measurements::ReadGpu read = OpenNvml(kernels::CudaPciBusId(index));
  if (read == nullptr) {
    platform::LogInfo("the GPU's driver says nothing of its use (no NVML): it is not reported");
  }
  return read;
}

// Lines for --version: LibTorch's version; whether CUDA kernels were built; the GPU that --device
// auto takes. For a GPU that LibTorch or this build's kernels cannot use, a warning with
// the reason and, after the last "; ", the remedy.
std::string DescribeLibTorch() {
  const absl::StatusOr<training::Device> best = training::OpenDevice("auto", 1);
  if (!best.ok()) return absl::StrCat("warning: ", best.status().message());
  std::vector<std::string> lines = {
      absl::StrCat("LibTorch ", best->provenance.libtorch_version()),
      absl::StrCat(kernels::HasCudaKernels() ? "with" : "without", " CUDA kernels")};
  if (best->cuda) {
    lines.push_back(
        absl::StrCat("CUDA ", best->provenance.cuda_version(), " on ", best->provenance.device()));
  } else if (best->warning.empty()) {
    lines.push_back("no GPU");
  }
  if (!best->warning.empty()) lines.push_back(absl::StrCat("warning: ", best->warning));
  return absl::StrJoin(lines, "\n");
}

// A check of a flag's value: returns the error, or "".
std::string CheckAddress(const std::string& address) {
  if (!rpc::HostOf(address).empty()) return "";
  return absl::StrCat("\"", address, "\" is not HOST:PORT");
}

void AddFlags(command_line::Command command, Flags& flags) {
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    if (!kind.is_access) continue;
    command.AddOption(absl::StrCat("--", kind.name, " ", kind.type), flags.access[kind.name],
                      absl::StrCat(kind.help, "; default $", kind.variable));
  }
  command
      .AddOption("--device DEVICE", flags.runner.device,
                 "Where to train: cpu, cuda:N, or auto (the first CUDA device, else the CPU)")
      .Check(platform::CheckDevice, "auto, cpu or cuda:N")
      .ShowDefault();
  command
      .AddOption("--kernels KERNELS", flags.runner.kernels,
                 "Kernels of a CUDA device. auto: when the first pack of a shape starts, compares "
                 "each of this program's kernels with LibTorch's operators. Uses the kernel unless "
                 "its numbers differ or the operators are more than a tenth faster. fused: always "
                 "this program's kernels. plain: always LibTorch's operators. A CPU always uses "
                 "this program's kernels")
      .OneOf({"auto", "fused", "plain"})
      .ShowDefault();
  command
      .AddOption(
          "--threads N", flags.runner.threads,
          "Threads of the CPU's kernels. 0: one for each CPU that the affinity (taskset), the "
          "cgroup's CPU quota and Slurm leave to this process. While other programs use "
          "these CPUs, the threads sleep where they otherwise spin. Results do not depend on "
          "it")
      .NonNegative()
      .ShowDefault();
  command
      .AddOption("--max_pack_size N", flags.runner.max_pack_size,
                 "Trials to train together as one batched model; 0: 30 on CUDA, 1 on a CPU")
      .NonNegative()
      .ShowDefault();
  command
      .AddOption("--worker_id ID", flags.worker_id,
                 "Unique name of this worker; default: host, device and process")
      .Check([](const std::string& id) { return std::string(ValidateWorkerId(id).message()); });
  command.AddOption("--experiment NAME", flags.experiment,
                    "Experiment whose trials alone this worker trains, such as experiments/sort-1; "
                    "default: all");
  command
      .AddOption(
          "--buffer_bytes N", flags.buffer_bytes,
          "Memory for events and checkpoints that the server has not stored yet; more than this "
          "goes to --spool_dir")
      .Positive()
      .ShowDefault();
  command
      .AddOption("--spool_dir DIR", flags.spool.directory,
                 "Directory for unsent events and checkpoints during a server outage. Deleted when "
                 "the worker exits")
      .ShowDefault();
  command
      .AddOption("--spool_bytes N", flags.spool.max_bytes,
                 "Maximum size of --spool_dir in bytes. When it is full, training waits. 0: "
                 "nothing is written to disk")
      .NonNegative()
      .ShowDefault();
  command
      .AddOption("--data_cache_dir DIR", flags.data.directory,
                 "Cache of downloaded files of examples. Workers of one user on one machine may "
                 "share it")
      .ShowDefault();
  command
      .AddOption("--data_cache_bytes N", flags.data.max_bytes,
                 "Maximum size of --data_cache_dir in bytes. The least recently used files are "
                 "deleted first; the newest one stays")
      .Positive()
      .ShowDefault();
  command.AddOption(
      "--server_data_dir DIR", flags.data.other_directory,
      "Directory of the server's files of examples, for a server on this machine: files "
      "that are in it are not downloaded");
  command
      .AddOption("--exit_when_idle DURATION", flags.exit_when_idle,
                 "Exit after this time without work; default: never")
      .Check(platform::CheckDuration);
  command
      .AddOption("--drain_timeout DURATION", flags.drain_timeout,
                 "Longest time for storing checkpoints after SIGTERM, or when the lease is "
                 "preempted. Set it a little below the time that is left until SIGKILL. Storing "
                 "ends sooner when the server takes nothing for 10 s")
      .Check(platform::CheckDuration)
      .ShowDefault();
  command
      .AddOption("--lifetime DURATION", flags.lifetime,
                 "Time until the machine is taken away. The worker stores checkpoints and exits "
                 "--drain_timeout before, or when a tenth of the time is left where that is less, "
                 "and takes no pack that could not reach a checkpoint; default: until "
                 "$SLURM_JOB_END_TIME, or for ever")
      .Check(platform::CheckDuration);
  command
      .AddOption("--metrics_listen HOST:PORT", flags.metrics_listen,
                 "Address of the worker's own metrics for Prometheus; default: none, for the "
                 "server has them too")
      .Check(CheckAddress);
  command.AddFlag(
      "--insecure_metrics", flags.insecure_metrics,
      "Allow --metrics_listen on addresses that other machines reach: they are plain text");
  command
      .AddOption("--log_format FORMAT", flags.log_format,
                 "Format of the log's lines: text, or json, an object with time, level and text")
      .OneOf({"text", "json"})
      .ShowDefault();
  command
      .AddOption("--log_level LEVEL", flags.log_level,
                 "Least severity of the lines in the log: info, warning or error")
      .OneOf({"info", "warning", "error"})
      .ShowDefault();
  command.AddFlag("--allow_python_networks", flags.allow_python_networks,
                  "Train users' PyTorch modules (network `python`): their code runs as this user");
  command.AddOption("--python PATH", flags.python,
                    "Python with PyTorch 1.13 or newer for users' modules; default "
                    "$LENGTHWISE_PYTHON_NETWORKS, or python3");
  command.AddOption("--python_device DEVICE", flags.python_device,
                    "Device of users' modules, as PyTorch names it, such as cuda:0; default "
                    "$LENGTHWISE_PYTHON_DEVICE, or cpu");
  command
      .AddOption("--python_limit DURATION", flags.python_limit,
                 "Longest time of one step of a user's module, and of making it [10m]")
      .Check(platform::CheckDuration);
  command.AddFlag("--exit_with_parent", flags.exit_with_parent,
                  "Exit, as on SIGTERM, when the process that started this one ends");
}

// Sets the channel from the command line, the environment and the configuration file.
absl::Status SetChannel(const Flags& flags, WorkerLoop::Options& options) {
  ASSIGN_OR_RETURN(const rpc::Settings settings,
                   rpc::ResolveSettings(flags.access, [](const char* name) -> const char* {
                     return std::getenv(name);
                   }));
  if (settings["server"].origin == "default") {
    return absl::InvalidArgumentError(
        "--server is required, here, as $LENGTHWISE_SERVER or in the configuration file");
  }
  rpc::ChannelOptions channel_options = rpc::ToChannelOptions(settings);
  channel_options.warn = [](const std::string& text) { platform::LogWarning(text); };
  options.server = channel_options.server;
  ASSIGN_OR_RETURN(options.channel,
                   CreateServerChannel(channel_options, options.session.sender.backoff));
  for (const std::string& path : {channel_options.tls_ca, channel_options.tls_certificate}) {
    const std::string soon = rpc::ExpiresSoon(absl::StrCat("the certificate ", path),
                                              rpc::ReadAuthorities(path).value_or(""), absl::Now());
    if (!soon.empty()) platform::LogWarning(soon);
  }
  options.explain = [channel_options](const absl::Status& status) {
    if (!absl::IsUnavailable(status)) return absl::OkStatus();
    return rpc::ExplainRefusedConnection(std::string(status.message()), channel_options);
  };
  return absl::OkStatus();
}

// Waits until a host of the server's addresses is known. Errors as of RetryWhileUnavailable.
absl::Status AwaitChannel(absl::Status status, const Flags& flags, WorkerLoop::Options& options,
                          platform::TerminationSignals& signals) {
  std::promise<void> stop;
  const std::shared_future<void> stopped = stop.get_future().share();
  signals.OnFirst([&stop](int) { stop.set_value(); });
  Reachability reachability(absl::StrCat("server ", options.server));
  const auto connect = [&] { return SetChannel(flags, options); };
  status = RetryWhileUnavailable(
      std::move(status), connect, options.session.sender.backoff, reachability,
      std::min(After(options.exit_when_idle), options.drain_at), stopped);
  signals.OnFirst(nullptr);
  // A later signal waits for the next handler.
  const bool asked_to_stop = stopped.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return asked_to_stop ? absl::CancelledError("stopped") : status;
}

int Fail(const absl::Status& status) {
  platform::LogError(status.message());
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailure;
}

int Run(const Flags& flags, platform::TerminationSignals& signals) {
  WorkerLoop::Options options;
  absl::Status channel = SetChannel(flags, options);
  if (!channel.ok() && !absl::IsUnavailable(channel)) return Fail(channel);
  absl::StatusOr<std::unique_ptr<PackRunner>> runner = CreatePackRunner(flags.runner);
  if (!runner.ok()) {
    platform::LogError("cannot use --device ", flags.runner.device, ": ",
                       runner.status().message());
    return kExitFailure;
  }
  options.worker_id = flags.worker_id.empty()
                          ? MakeWorkerId((*runner)->provenance().host(),
                                         DeviceInId(flags.runner.device, **runner), getpid())
                          : flags.worker_id;
  options.experiment = flags.experiment;
  Measurements measurements(GpuReader(flags.runner.device, **runner),
                            [&runner] { return (*runner)->provenance().kernels(); });
  options.session.measurements = &measurements;
  Spool spool(flags.spool);
  DataCache data(flags.data);
  options.session.data = &data;
  options.session.outbox.max_bytes = flags.buffer_bytes;
  options.session.outbox.spool = flags.spool.max_bytes > 0 ? &spool : nullptr;
  if (!flags.exit_when_idle.empty()) {
    absl::ParseDuration(flags.exit_when_idle, &options.exit_when_idle);
  }
  absl::ParseDuration(flags.drain_timeout, &options.session.drain_timeout);
  const absl::Duration lifetime = Lifetime(flags.lifetime, std::getenv("SLURM_JOB_END_TIME"));
  options.drain_at = After(lifetime - DrainReserve(lifetime, options.session.drain_timeout));
  const v1::Provenance provenance = (*runner)->provenance();
  platform::LogInfo("lengthwise_worker ", platform::kVersion, " on ", provenance.device(), ", ",
                    platform::Counted(provenance.threads(), "CPU thread"), " (",
                    flags.runner.threads > 0 ? "--threads" : platform::CountUsableCpus().limit,
                    "), packs of up to ", (*runner)->max_pack_size(), "; server ", options.server);
  platform::LogInfo("the CPU's instruction set is ", provenance.instruction_set(),
                    ", MKL's reproducible mode ", training::MklMode());
  // The worker counts as ready even while the server is away.
  const auto notify_ready = [&] {
    const absl::Status status = platform::NotifyReady(
        absl::StrCat(options.worker_id, " on ", provenance.device(), " for ", options.server));
    if (!status.ok()) platform::LogWarning(status.message());
  };
  if (!channel.ok()) {
    notify_ready();
    channel = AwaitChannel(std::move(channel), flags, options, signals);
    if (absl::IsCancelled(channel) || absl::IsDeadlineExceeded(channel)) {
      platform::LogInfo("bye");
      return 0;
    }
    if (!channel.ok()) return Fail(channel);
  }
  WorkerLoop loop(options, **runner);
  std::unique_ptr<monitoring::HttpEndpoint> metrics;
  if (!flags.metrics_listen.empty()) {
    const auto collect = [&loop, &options, &runner] {
      return monitoring::WorkerMetrics(
          {monitoring::WorkerSample{.worker_id = options.worker_id,
                                    .provenance = (*runner)->provenance(),
                                    .max_pack_size = (*runner)->max_pack_size(),
                                    .measurements = loop.ReadMeasurements()}});
    };
    auto endpoint = monitoring::HttpEndpoint::Start(flags.metrics_listen, "worker", {collect});
    if (!endpoint.ok()) {
      platform::LogError(endpoint.status().message());
      return kExitFailure;
    }
    metrics = *std::move(endpoint);
    platform::LogInfo("metrics on http://", metrics->address(), "/metrics");
  }
  signals.OnFirst([&loop](int signal) {
    platform::LogInfo("SIG", sigabbrev_np(signal), ": finishing; SIGINT exits at once");
    platform::NotifyStopping().IgnoreError();
    loop.Drain();
  });
  notify_ready();
  const absl::Status status = loop.Run();
  signals.OnFirst(nullptr);
  if (!status.ok()) {
    platform::LogError(status.message());
    return kExitFailure;
  }
  platform::LogInfo("bye");
  return 0;
}

int Main(int argc, char** argv) {
  platform::PrepareFiles();
  // gRPC's own log describes handshakes; our errors say what to do.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const pid_t starter = platform::StartingProcess();
  // Before any other thread starts, because threads inherit which signals are blocked.
  platform::TerminationSignals signals;
  command_line::CommandLine line(
      "lengthwise_worker", "Trains and evaluates trials on one device, for a lengthwise_server.");
  line.SetVersion(
      [] {
        return absl::StrCat(platform::VersionText("lengthwise_worker"), "\n", DescribeLibTorch());
      },
      "Print the versions of this program and of LibTorch, and the GPUs that it can use");
  line.root().Footer(
      "The first SIGTERM or SIGINT stores checkpoints, gives the work back and exits 0. A "
      "SIGINT after it exits at once.\nExit codes: 0 asked to stop or idle, 1 failed, 2 wrong "
      "flags.");
  Flags flags;
  AddFlags(line.root(), flags);
  const absl::StatusOr<std::string> text =
      line.Parse(std::vector<std::string>(argv + 1, argv + argc));
  if (!text.ok()) {
    std::cerr << "lengthwise_worker: " << text.status().message() << "\n";
    return kExitUsage;
  }
  if (!text->empty()) {
    std::cout << *text;
    return 0;
  }
  platform::SetUpLog(flags.log_format, flags.log_level);
  if (!flags.metrics_listen.empty() && !flags.insecure_metrics &&
      !rpc::IsLoopback(flags.metrics_listen)) {
    platform::LogError(flags.metrics_listen,
                       " can be reached by other machines, and the metrics are plain "
                       "text. Listen on 127.0.0.1, or allow it with "
                       "--insecure_metrics");
    return kExitUsage;
  }
  if (flags.exit_with_parent) {
    if (const absl::Status status = platform::EndWithParent(starter); !status.ok()) {
      platform::LogInfo(status.message(), ": exiting");
      return 0;
    }
  }
  if (flags.allow_python_networks) {
    flags.runner.python = flags.python.empty() ? models::DefaultInterpreter() : flags.python;
    flags.runner.python_device =
        flags.python_device.empty() ? models::DefaultPythonDevice() : flags.python_device;
    absl::ParseDuration(flags.python_limit, &flags.runner.python_limit);
  }
  return Run(flags, signals);
}

}  // namespace
}  // namespace lengthwise::worker

int main(int argc, char** argv) { return lengthwise::worker::Main(argc, argv); }
