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
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/service/server_process.h"
#include "benchmarks/service/worker_stub.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/create_channel_posix.h"
#include "platform/descriptors.h"
#include "platform/grpc_lifetime.h"
#include "platform/mutex.h"
#include "platform/sha256.h"
#include "platform/version.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/connection/worker_loop.h"
#include "worker/pack_session.h"

namespace lengthwise::benchmarks {
namespace {

struct Flags {
  std::string server;
  int workers = 10'000;
  int connections = 6'500;
  int seconds = 20;
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

// A worker without a lease, on one of the connections.
struct IdleWorker {
  v1::WorkerService::Stub* stub = nullptr;
  v1::HeartbeatRequest request;
  v1::HeartbeatResponse response;
  std::unique_ptr<grpc::ClientContext> context;
  absl::Time sent;
  std::atomic<bool> busy = false;
};

void MeasureHeartbeats(const Flags& flags) {
  ServerProcess server(flags.server);
  std::vector<std::unique_ptr<v1::WorkerService::Stub>> stubs;
  std::vector<std::unique_ptr<IdleWorker>> workers;
  absl::Duration interval;
  for (int i = 0; i < flags.workers; ++i) {
    if (i < flags.connections) {
      stubs.push_back(
          v1::WorkerService::NewStub(ConnectFrom(static_cast<uint32_t>(i) + 1, server.address())));
    }
    auto worker = std::make_unique<IdleWorker>();
    worker->stub = stubs[static_cast<size_t>(i) % stubs.size()].get();
    v1::RegisterWorkerRequest registration;
    registration.mutable_worker()->set_worker_id(absl::StrCat("fleet-", i));
    registration.mutable_worker()->set_max_pack_size(1);
    registration.mutable_worker()->set_api_version(platform::kWorkerApiVersion);
    v1::RegisterWorkerResponse registered;
    grpc::ClientContext context;
    Must(worker->stub->RegisterWorker(&context, registration, &registered), "registration refused");
    worker->request.set_worker_id(registration.worker().worker_id());
    interval = absl::Seconds(registered.heartbeat_interval().seconds()) +
               absl::Nanoseconds(registered.heartbeat_interval().nanos());
    workers.push_back(std::move(worker));
  }
  platform::Mutex mutex;
  std::vector<double> latencies;  // guarded by mutex
  std::atomic<int64_t> failures = 0, late = 0, under_way = 0;
  const double cpu = server.CpuSeconds();
  const absl::Time start = absl::Now();
  const absl::Time end = start + absl::Seconds(flags.seconds);
  int64_t sent = 0;
  // Spreads heartbeats evenly over the interval, as for workers that registered one after another.
  const absl::Duration gap = interval / flags.workers;
  while (true) {
    const absl::Time due = start + gap * sent;
    if (due >= end) break;
    absl::SleepFor(std::max(absl::ZeroDuration(), due - absl::Now()));
    IdleWorker& worker = *workers[static_cast<size_t>(sent++ % flags.workers)];
    if (worker.busy.exchange(true)) {
      ++late;  // its last heartbeat was not answered within an interval
      continue;
    }
    worker.context = std::make_unique<grpc::ClientContext>();
    worker.sent = absl::Now();
    ++under_way;
    worker.stub->async()->Heartbeat(
        worker.context.get(), &worker.request, &worker.response, [&](const grpc::Status& status) {
          const double took = absl::ToDoubleSeconds(absl::Now() - worker.sent);
          if (!status.ok()) ++failures;
          {
            platform::MutexLock lock(mutex);
            latencies.push_back(took);
          }
          worker.busy = false;
          --under_way;
        });
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const double cpu_seconds = server.CpuSeconds() - cpu;
  while (under_way > 0) absl::SleepFor(absl::Milliseconds(10));
  if (failures > 0) Fail(absl::StrCat(failures.load(), " heartbeats failed"));
  platform::MutexLock lock(mutex);
  const auto count = static_cast<double>(latencies.size());
  const double rate = count / seconds;
  const double asked = flags.workers / absl::ToDoubleSeconds(interval);
  // Scaled to the requested rate, so that a slow client does not make the server look cheap.
  const double cores = cpu_seconds * asked / count;
  const double p99 = Quantile(latencies, 0.99);
  std::printf(
      "heartbeats of %d workers on %d connections, every %.2f s: %.0f of %.0f /s; %.2f cores of "
      "the server for all, %.0f us each; 99th percentile %.1f ms, %lld late%s\n",
      flags.workers, static_cast<int>(stubs.size()), absl::ToDoubleSeconds(interval), rate, asked,
      cores, 1e6 * cpu_seconds / count, 1e3 * p99, static_cast<long long>(late.load()),
      rate < 0.95 * asked ? "; load not reached" : "");
}

// --- A checkpoint beside slow downloads ---------------------------------------------------------

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
  writer->Write(request);
  for (size_t at = 0; at < bytes.size(); at += kChunk) {
    request.set_data(bytes.substr(at, kChunk));
    writer->Write(request);
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

// Relays one connection at a time to the server. Limits what clients send to `rate` bytes per
// second.
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

  // Small, because bytes waiting in the receive buffer have already passed the link.
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

// Trains until it is told to drain, then has one checkpoint to store.
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
  worker::Connection::Options options;
  options.server = link.address();
  options.worker_id = "drained";
  worker::Connection connection(options, runner);
  std::atomic<bool> ended = false;
  std::thread running([&] {
    if (const absl::Status status = connection.Run(); !status.ok()) Fail(status.ToString());
    ended = true;
  });
  runner.started.WaitForNotification();
  const absl::Time start = absl::Now();
  connection.Drain();
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
  app.add_option("--workers", flags.workers, "Workers that send heartbeats")
      ->check(CLI::Range(1, 20'000))
      ->capture_default_str();
  app.add_option("--connections", flags.connections,
                 "Connections of the workers; the server uses three descriptors for each")
      ->check(CLI::Range(1, 20'000))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "Duration of the heartbeats")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--uploads", flags.uploads)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--checkpoint_mb", flags.checkpoint_mb, "Size of the drained checkpoint, MB")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  platform::KeepGrpcInitialized();
  platform::RaiseDescriptorLimit();
  // Silences the workers' log.
  if (freopen("/dev/null", "w", stderr) == nullptr) return 1;
  MeasureUploads(flags);
  MeasureHeartbeats(flags);
  MeasureDrain(flags);
  return 0;
}

}  // namespace
}  // namespace lengthwise::benchmarks

int main(int argc, char** argv) { return lengthwise::benchmarks::Main(argc, argv); }
