// Measures the server under a fleet: heartbeats of thousands of workers, a checkpoint upload during
// slow downloads, and a drain over a slow link. README.md in this folder explains each figure.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/service/server_process.h"
#include "benchmarks/service/worker_stub.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/create_channel_posix.h"
#include "platform/descriptors.h"
#include "platform/mutex.h"
#include "platform/sha256.h"
#include "proto/experiment_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "rpc/transport.h"
#include "worker/connection/worker_loop.h"
#include "worker/pack_session.h"

namespace lengthwise::benchmarks {
namespace {

struct Flags {
  std::string server;
  int workers = 10'000;
  int connections = 6'500;
  int seconds = 20;
  int cancellations = 200;
  int uploads = 50;
  int checkpoint_mb = 47;
};

void Must(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) Fail(what + ": " + status.error_message());
}

sockaddr_in Loopback(uint32_t host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Parses "127.0.0.1:PORT".
int PortOf(const std::string& address) {
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) Fail("no port: " + address);
  return port;
}

// --- Heartbeats ---------------------------------------------------------------------------------

// Connects from a separate loopback address, like a separate machine: the server limits one address
// to half of all connections.
std::shared_ptr<grpc::Channel> ConnectFrom(uint32_t host, const std::string& server) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in from = Loopback(host, 0);
  const sockaddr_in to = Loopback(0, PortOf(server));
  if (descriptor < 0 ||
      bind(descriptor, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0 ||
      connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    Fail(absl::StrCat("cannot connect: ", std::strerror(errno)));
  }
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  return grpc::CreateInsecureChannelFromFd(server, descriptor);
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

// One worker with a lease of one trial. Workers share connections. Each has at most one heartbeat
// in flight.
struct FleetWorker {
  v1::WorkerService::Stub* stub = nullptr;
  std::string trial;
  bool waits = false;
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;
  std::unique_ptr<grpc::ClientContext> context;
  absl::Time sent;
  absl::Time due;
  // When its trial was cancelled. Guarded by HeartbeatLoad::mutex_.
  absl::Time cancelled = absl::InfiniteFuture();
};

// Sends the workers' heartbeats as worker/connection does: a worker sends its next heartbeat after
// the answer to the last one, and at least `interval` after it sent the last one.
class HeartbeatLoad {
 public:
  struct Result {
    double heartbeats_per_second = 0;
    double server_cores = 0;
    // Seconds from a heartbeat to its answer, of workers that do not wait.
    std::vector<double> latencies;
    // Seconds from a trial's cancellation to the answer that tells its worker, of workers that
    // wait.
    std::vector<double> cancellations;
    // Share of time for which a worker's next heartbeat was overdue, averaged over workers. A high
    // share means that this client is overloaded, not the server.
    double client_lag = 0;
    int64_t resident_bytes = 0;
  };

  HeartbeatLoad(ServerProcess& server, std::vector<std::unique_ptr<FleetWorker>>& workers,
                absl::Duration interval, absl::Duration wait)
      : server_(server), workers_(workers), interval_(interval), wait_(wait) {}

  // Measures for `seconds` after a warm-up. Cancels `cancellations` trials, spread evenly over this
  // time, and then waits until every worker was told, for at most kLongestTelling.
  Result Run(int seconds, int cancellations) {
    // Spread the first heartbeats evenly over the time for which answers are held, as if the
    // workers had registered one after another.
    const absl::Duration warm_up = std::max(interval_, wait_) + absl::Seconds(1);
    const absl::Time begin = absl::Now();
    {
      platform::MutexLock lock(mutex_);
      for (size_t i = 0; i < workers_.size(); ++i) {
        const double share = static_cast<double>(i) / static_cast<double>(workers_.size());
        workers_[i]->waits = wait_ > absl::ZeroDuration() && i % kOfThemOneDoesNotWait != 0;
        workers_[i]->due = begin + std::max(interval_, wait_) * share;
        due_.push({workers_[i]->due, workers_[i].get()});
      }
    }
    std::thread sender([this] { Send(); });
    absl::SleepFor(warm_up);
    Result result;
    {
      platform::MutexLock lock(mutex_);
      result_ = &result;
      measuring_ = true;
    }
    const double cpu = server_.CpuSeconds();
    const absl::Time start = absl::Now();
    Cancel(cancellations, absl::Seconds(seconds) / std::max(1, cancellations));
    absl::SleepFor(start + absl::Seconds(seconds) - absl::Now());
    const double took = absl::ToDoubleSeconds(absl::Now() - start);
    const double cpu_seconds = server_.CpuSeconds() - cpu;
    result.resident_bytes = server_.ResidentBytes();
    {
      platform::MutexLock lock(mutex_);
      measuring_ = false;
    }
    // The last trials were cancelled just now: on a slow machine their workers are told later.
    const absl::Time told_by = absl::Now() + kLongestTelling;
    while (Told() < cancellations && absl::Now() < told_by) absl::SleepFor(absl::Milliseconds(10));
    {
      platform::MutexLock lock(mutex_);
      result_ = nullptr;
      over_ = true;
    }
    sender.join();
    for (const auto& worker : workers_) {
      if (worker->context != nullptr) worker->context->TryCancel();
    }
    while (in_flight_ > 0) absl::SleepFor(absl::Milliseconds(10));
    if (failures_ > 0) Fail(absl::StrCat(failures_.load(), " heartbeats failed"));
    if (static_cast<int>(result.cancellations.size()) < cancellations) {
      Fail(absl::StrCat(result.cancellations.size(), " of ", cancellations,
                        " cancellations reached their workers"));
    }
    platform::MutexLock lock(mutex_);
    result.heartbeats_per_second = static_cast<double>(answered_) / took;
    result.server_cores = cpu_seconds / took;
    result.client_lag = absl::FDivDuration(lag_, absl::Seconds(took) * workers_.size());
    return result;
  }

 private:
  // Even when workers wait, one in this many does not, to measure the latency of heartbeats.
  static constexpr size_t kOfThemOneDoesNotWait = 100;
  static constexpr absl::Duration kLongestTelling = absl::Seconds(10);

  // Number of cancellations of which the workers were told.
  int Told() {
    platform::MutexLock lock(mutex_);
    return static_cast<int>(result_->cancellations.size());
  }

  void Send() {
    while (true) {
      FleetWorker* worker = nullptr;
      {
        platform::MutexLock lock(mutex_);
        if (over_) return;
        if (!due_.empty() && due_.top().first <= absl::Now()) {
          worker = due_.top().second;
          due_.pop();
        }
      }
      if (worker == nullptr) {
        absl::SleepFor(absl::Microseconds(500));
        continue;
      }
      worker->context = std::make_unique<grpc::ClientContext>();
      worker->request.mutable_wait()->set_seconds(worker->waits ? absl::ToInt64Seconds(wait_) : 0);
      worker->sent = absl::Now();
      ++in_flight_;
      worker->request.set_number(worker->request.number() + 1);
      worker->stub->async()->Synchronize(
          worker->context.get(), &worker->request, &worker->response,
          [this, worker](const grpc::Status& status) { Answered(*worker, status); });
    }
  }

  void Answered(FleetWorker& worker, const grpc::Status& status) {
    Count(worker, status);
    --in_flight_;  // last, because Run may now return
  }

  void Count(FleetWorker& worker, const grpc::Status& status) {
    const absl::Time now = absl::Now();
    platform::MutexLock lock(mutex_);
    if (over_) return;
    if (!status.ok()) ++failures_;
    if (measuring_) {
      ++answered_;
      lag_ += worker.sent - worker.due;
      if (!worker.waits) result_->latencies.push_back(absl::ToDoubleSeconds(now - worker.sent));
    }
    if (result_ != nullptr) {
      if (worker.response.leases_size() > 0 &&
          worker.response.leases(0).cancelled_trials_size() > 0) {
        result_->cancellations.push_back(absl::ToDoubleSeconds(now - worker.cancelled));
        worker.request.clear_leases();  // its only trial has ended
      }
    }
    worker.due = std::max(now, worker.sent + interval_);
    due_.push({worker.due, &worker});
  }

  void Cancel(int cancellations, absl::Duration gap) {
    const auto stub = v1::ExperimentService::NewStub(server_.Connect());
    for (int i = 0; i < cancellations; ++i) {
      const absl::Time next = absl::Now() + gap * 0.9;
      // Cancel each trial at most once, and only trials of workers that wait.
      const size_t at = static_cast<size_t>(i) * kOfThemOneDoesNotWait;
      FleetWorker& worker = *workers_[(at + 1 + at / workers_.size()) % workers_.size()];
      v1::CancelTrialRequest request;
      request.set_name(worker.trial);
      {
        platform::MutexLock lock(mutex_);
        worker.cancelled = absl::Now();
      }
      grpc::ClientContext context;
      v1::Trial cancelled;
      Must(stub->CancelTrial(&context, request, &cancelled), "cancellation refused");
      absl::SleepFor(next - absl::Now());
    }
  }

  ServerProcess& server_;
  std::vector<std::unique_ptr<FleetWorker>>& workers_;
  const absl::Duration interval_;
  const absl::Duration wait_;
  platform::Mutex mutex_;
  using Due = std::pair<absl::Time, FleetWorker*>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_ ABSL_GUARDED_BY(mutex_);
  Result* result_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null before and after the measurement
  bool measuring_ ABSL_GUARDED_BY(mutex_) = false;    // heartbeats are counted
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t answered_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration lag_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> in_flight_ = 0, failures_ = 0;
};

void MeasureHeartbeats(const Flags& flags) {
  ServerProcess server(flags.server);
  SubmitTrials(server, "fleet", flags.workers);
  std::vector<std::unique_ptr<v1::WorkerService::Stub>> stubs(
      static_cast<size_t>(std::min(flags.workers, flags.connections)));
  std::vector<std::unique_ptr<FleetWorker>> workers(static_cast<size_t>(flags.workers));
  absl::Duration interval;
  absl::Duration lease_duration;
  const auto start_workers = [&](size_t from, size_t end, size_t step) {
    for (size_t i = from; i < end; i += step) {
      workers[i] = std::make_unique<FleetWorker>();
      FleetWorker& worker = *workers[i];
      // Make a call at once: when many connections have made none, the server closes the oldest.
      if (i < stubs.size()) {
        stubs[i] =
            v1::WorkerService::NewStub(ConnectFrom(static_cast<uint32_t>(i) + 1, server.address()));
      }
      worker.stub = stubs[i % stubs.size()].get();
      worker.request = FirstCall(absl::StrCat("fleet-", i));
      v1::SynchronizeResponse first;
      grpc::ClientContext context;
      Must(worker.stub->Synchronize(&context, worker.request, &first), "no lease");
      if (!first.has_lease()) Fail("no lease: " + first.no_lease_reason());
      worker.trial = first.lease().trials(0).trial();
      Hold(first.lease(), worker.request);
      if (i + 1 == workers.size()) {
        interval = ToDuration(first.heartbeat_interval());
        lease_duration = ToDuration(first.lease_duration());
      }
    }
  };
  // Start workers in parallel, so that no lease expires before the last one is granted.
  const auto start_range = [&](size_t begin, size_t end) {
    constexpr size_t kStarters = 16;
    std::vector<std::thread> starters;
    for (size_t i = 0; i < kStarters; ++i) {
      starters.emplace_back(start_workers, begin + i, end, kStarters);
    }
    for (std::thread& starter : starters) starter.join();
  };
  start_range(0, stubs.size());
  start_range(stubs.size(), workers.size());

  const auto print = [&](const char* kind, HeartbeatLoad::Result result) {
    const double latency = Quantile(result.latencies, 0.99);
    std::string told;
    if (!result.cancellations.empty()) {
      const double cancellation = Quantile(result.cancellations, 0.99);
      told = absl::StrFormat(
          "; from a cancellation to its worker: 99th percentile %.1f ms, longest of %d %.1f ms",
          1e3 * cancellation, result.cancellations.size(), 1e3 * Quantile(result.cancellations, 1));
    }
    std::printf(
        "%s of %d workers with leases on %d connections: %.0f /s; %.2f cores of the server for "
        "all, %.0f us each; not held: 99th percentile %.1f ms%s; server's memory %lld MB%s\n",
        kind, flags.workers, static_cast<int>(stubs.size()), result.heartbeats_per_second,
        result.server_cores, 1e6 * result.server_cores / result.heartbeats_per_second,
        1e3 * latency, told.c_str(), static_cast<long long>(result.resident_bytes >> 20),
        result.client_lag > 0.05 ? "; load not reached" : "");
  };
  const int cancellations = std::min(flags.cancellations, flags.workers / 4);
  // First like workers that do not wait, then like real ones.
  print("heartbeats, none held,",
        HeartbeatLoad(server, workers, interval, absl::ZeroDuration()).Run(flags.seconds, 0));
  print("heartbeats", HeartbeatLoad(server, workers, interval, lease_duration / 4)
                          .Run(flags.seconds, cancellations));
}

// --- A checkpoint upload during slow downloads --------------------------------------------------

v1::UploadArtifactRequest::Header HeaderOf(const WorkerStub& worker, const std::string& bytes,
                                           int64_t step) {
  v1::UploadArtifactRequest::Header header;
  header.set_lease_id(worker.lease().lease_id());
  header.set_fencing_token(worker.lease().fencing_token());
  header.set_trial(worker.lease().trials(0).trial());
  header.set_sha256(platform::Sha256Hex(bytes));
  header.set_size_bytes(static_cast<int64_t>(bytes.size()));
  header.set_step(step);
  return header;
}

void Upload(WorkerStub& worker, const std::string& bytes, int64_t step) {
  constexpr size_t kChunk = 1 << 20;
  grpc::ClientContext context;
  v1::UploadArtifactResponse response;
  const auto writer = worker.stub().UploadArtifact(&context, &response);
  v1::UploadArtifactRequest request;
  *request.mutable_header() = HeaderOf(worker, bytes, step);
  for (size_t at = 0; at < bytes.size(); at += kChunk) {
    request.set_data(bytes.substr(at, kChunk));
    writer->Write(request);
    request.clear_header();
  }
  writer->WritesDone();
  Must(writer->Finish(), "upload failed");
}

void MeasureUploads(const Flags& flags) {
  constexpr int kDownloads = 8;
  ServerProcess server(flags.server);
  SubmitTrials(server, "transfers", kDownloads + 1);
  std::vector<std::unique_ptr<WorkerStub>> workers;
  for (int i = 0; i <= kDownloads; ++i) {
    workers.push_back(std::make_unique<WorkerStub>(server, absl::StrCat("transfer-", i)));
  }
  const std::string large(size_t{64} << 20, 'x');
  for (int i = 0; i < kDownloads; ++i) Upload(*workers[static_cast<size_t>(i)], large, 1);
  std::atomic<bool> over = false;
  std::atomic<int> reading = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kDownloads; ++i) {
    threads.emplace_back([&, i] {
      WorkerStub& worker = *workers[static_cast<size_t>(i)];
      const auto header = HeaderOf(worker, large, 1);
      while (!over) {
        grpc::ClientContext context;
        v1::DownloadArtifactRequest request;
        request.set_lease_id(header.lease_id());
        request.set_fencing_token(header.fencing_token());
        request.set_trial(header.trial());
        request.set_sha256(header.sha256());
        const auto reader = worker.stub().DownloadArtifact(&context, request);
        v1::DownloadArtifactResponse response;
        bool first = true;
        while (!over && reader->Read(&response)) {
          if (std::exchange(first, false)) ++reading;
          absl::SleepFor(absl::Milliseconds(30));
        }
        context.TryCancel();
        reader->Finish();
      }
    });
  }
  while (reading < kDownloads) absl::SleepFor(absl::Milliseconds(1));
  std::vector<double> seconds;
  for (int i = 0; i < flags.uploads; ++i) {
    std::string bytes(size_t{1} << 20, 'y');
    bytes.replace(0, 12, absl::StrCat(i));
    const absl::Time start = absl::Now();
    Upload(*workers.back(), bytes, i + 1);
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  const double longest = Quantile(seconds, 1);
  const double median = Quantile(seconds, 0.5);
  std::printf("upload of 1 MiB beside %d slow downloads: median %.1f ms, longest of %d %.1f ms\n",
              kDownloads, 1e3 * median, flags.uploads, 1e3 * longest);
}

// --- A drain over a slow link -------------------------------------------------------------------

// Relays connections to the server. Limits what the client of each connection sends to `rate` bytes
// per second.
class SlowLink {
 public:
  SlowLink(const std::string& server, int64_t rate) : rate_(rate) {
    server_ = Loopback(0, PortOf(server));
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any = Loopback(0, 0);
    socklen_t size = sizeof(any);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&any), size) != 0 ||
        listen(listener_, 16) != 0) {
      Fail("cannot listen");
    }
    getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &size);
    address_ = absl::StrCat("127.0.0.1:", ntohs(any.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~SlowLink() {
    stopping_ = true;
    thread_.join();
    close(listener_);
  }
  const std::string& address() const { return address_; }

 private:
  void Run() {
    std::vector<std::thread> connections;
    while (!stopping_) {
      pollfd ready = {.fd = listener_, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, 50) <= 0) continue;
      const int client = accept(listener_, nullptr, nullptr);
      if (client >= 0) connections.emplace_back([this, client] { Relay(client); });
    }
    for (std::thread& connection : connections) connection.join();
  }

  // Keeps the receive buffer small: to the client, bytes in it have already passed the link.
  void Relay(int client) {
    const int size = 64 << 10;
    setsockopt(client, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, reinterpret_cast<sockaddr*>(&server_), sizeof(server_)) != 0) {
      close(client);
      close(server);
      return;
    }
    std::array<char, 16 << 10> buffer;
    while (!stopping_) {
      std::array<pollfd, 2> ends = {pollfd{.fd = client, .events = POLLIN, .revents = 0},
                                    pollfd{.fd = server, .events = POLLIN, .revents = 0}};
      if (poll(ends.data(), 2, 50) <= 0) continue;
      bool open = true;
      for (size_t i = 0; i < 2 && open; ++i) {
        if (ends[i].revents == 0) continue;
        const ssize_t got = read(ends[i].fd, buffer.data(), buffer.size());
        open = got > 0;
        for (ssize_t at = 0; open && at < got;) {
          const ssize_t put =
              write(ends[1 - i].fd, buffer.data() + at, static_cast<size_t>(got - at));
          open = put > 0;
          at += put;
        }
        if (open && i == 0) {
          absl::SleepFor(absl::Seconds(static_cast<double>(got) / static_cast<double>(rate_)));
        }
      }
      if (!open) break;
    }
    close(client);
    close(server);
  }

  const int64_t rate_;
  sockaddr_in server_ = {};
  int listener_ = -1;
  std::string address_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

// Does nothing until it is told to drain, then emits one checkpoint.
class DrainedRunner final : public worker::PackRunner {
 public:
  explicit DrainedRunner(std::string checkpoint) : checkpoint_(std::move(checkpoint)) {}
  absl::Status Run(const v1::Lease&, worker::PackSession& session) override {
    started.Notify();
    while (session.GetDirective(0) == worker::PackSession::Directive::kContinue) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    session.EmitCheckpoint(0, 1, checkpoint_);
    return absl::OkStatus();
  }
  v1::Provenance provenance() const override { return {}; }
  int32_t max_pack_size() const override { return 1; }

  absl::Notification started;

 private:
  const std::string checkpoint_;
};

void MeasureDrain(const Flags& flags) {
  constexpr int64_t kRate = 2'000'000;
  constexpr absl::Duration kGrace = absl::Seconds(40);
  ServerProcess server(flags.server);
  SubmitTrials(server, "drain", 1);
  SlowLink link(server.address(), kRate);
  DrainedRunner runner(std::string(static_cast<size_t>(flags.checkpoint_mb) * 1'000'000, 'x'));
  worker::WorkerLoop::Options options;
  options.server = link.address();
  options.worker_id = "drained";
  worker::WorkerLoop loop(options, runner);
  std::atomic<bool> ended = false;
  std::thread running([&] {
    if (const absl::Status status = loop.Run(); !status.ok()) Fail(status.ToString());
    ended = true;
  });
  runner.started.WaitForNotification();
  const absl::Time start = absl::Now();
  loop.Drain();
  while (!ended && absl::Now() - start < kGrace) absl::SleepFor(absl::Milliseconds(10));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const bool in_time = ended;
  running.join();
  // The next worker's lease shows which checkpoint was stored.
  WorkerStub next(server, "next");
  const int64_t stored = next.lease().trials(0).checkpoint().size_bytes();
  std::printf(
      "drain of a checkpoint of %d MB at 2 MB/s: %s in %.1f s (grace 40 s), stored %lld MB\n",
      flags.checkpoint_mb, in_time ? "ended" : "had not ended", seconds,
      static_cast<long long>(stored / 1'000'000));
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Measures a server under a fleet, on loopback. Starts and stops its own server.",
               "fleet");
  app.add_option("--server_program", flags.server, "Path of lengthwise_server")->required();
  app.add_option("--workers", flags.workers, "That send heartbeats")
      ->check(CLI::Range(1'000, 20'000))
      ->capture_default_str();
  app.add_option("--connections", flags.connections,
                 "Connections of the workers; the server uses three descriptors for each")
      ->check(CLI::Range(1, 20'000))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "Duration of the heartbeats")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--cancellations", flags.cancellations, "Of workers' trials, meanwhile")
      ->check(CLI::Range(0, 1'000))
      ->capture_default_str();
  app.add_option("--uploads", flags.uploads)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--checkpoint_mb", flags.checkpoint_mb, "Size of the drained checkpoint, MB")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  rpc::KeepGrpcInitialized();
  platform::RaiseDescriptorLimit();
  MeasureUploads(flags);
  MeasureHeartbeats(flags);
  // Silences the worker's log.
  if (freopen("/dev/null", "w", stderr) == nullptr) return 1;
  MeasureDrain(flags);
  return 0;
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) { return lengthwise::benchmarks::Main(argc, argv); }
