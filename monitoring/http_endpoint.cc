#include "monitoring/http_endpoint.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "CivetServer.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "monitoring/families.h"
#include "platform/process_usage.h"
#include "platform/version.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace lengthwise::monitoring {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

// Exports the process's resource usage under the standard names of Prometheus' client libraries,
// such as process_cpu_seconds_total.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<MetricFamily> Collect() const override {
    const platform::ProcessUsage usage = platform::ReadProcessUsage();
    std::vector<MetricFamily> families;
    const auto add = [&](const char* name, MetricType type, const char* help, double value) {
      AddValue({}, value, families.emplace_back(MakeFamily(name, type, help)));
    };
    add("process_cpu_seconds_total", MetricType::Counter, "User and system CPU time, in seconds.",
        usage.cpu_seconds);
    add("process_resident_memory_bytes", MetricType::Gauge, "Resident memory, in bytes.",
        static_cast<double>(usage.resident_bytes));
    add("process_start_time_seconds", MetricType::Gauge,
        "Start time of the process, in seconds since 1970.", usage.start_time_seconds);
    add("process_open_fds", MetricType::Gauge, "Open file descriptors.",
        static_cast<double>(usage.open_files));
    add("process_max_fds", MetricType::Gauge, "Limit of open file descriptors.",
        static_cast<double>(usage.max_open_files));
    return families;
  }
};

// Returns CivetWeb's options. An unfinished request holds a thread until the timeout, so the
// timeout is short and there are several threads.
std::vector<std::string> Options(const std::string& listen) {
  return {"listening_ports",    listen, "num_threads",           "16",
          "request_timeout_ms", "1000", "keep_alive_timeout_ms", "1000"};
}

// Answers HEAD, which the exposer refuses, as health checks send it. Returns 0 for other requests.
int AnswerHead(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  if (absl::string_view(request->request_method) != "HEAD" ||
      absl::string_view(request->local_uri) != "/metrics") {
    return 0;
  }
  mg_printf(connection,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Connection: close\r\n\r\n");
  return 200;
}

class BuildInfo final : public prometheus::Collectable {
 public:
  explicit BuildInfo(absl::string_view program) : program_(program) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    auto family = MakeFamily("lengthwise_build_info", prometheus::MetricType::Gauge,
                             "Always 1; labels identify the program and its build.");
    AddValue({{"program", program_},
              {"version", platform::kVersion},
              {"revision", platform::kSourceRevision}},
             1, family);
    return {std::move(family)};
  }

 private:
  const std::string program_;
};

// Connects to "HOST:PORT" and hangs up. Ignores errors: it only wakes the listener.
void Knock(absl::string_view address) {
  const size_t colon = address.rfind(':');
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.substr(0, colon), "["), "]"));
  const std::string port(address.substr(colon + 1));
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* to = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &to) != 0) return;
  const int connection = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection >= 0) {
    static_cast<void>(connect(connection, to->ai_addr, to->ai_addrlen));
    close(connection);
  }
  freeaddrinfo(to);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(
    const std::string& listen, absl::string_view program,
    std::vector<std::shared_ptr<prometheus::Collectable>> collectables) {
  std::unique_ptr<HttpEndpoint> endpoint(new HttpEndpoint);
  endpoint->collectables_ = std::move(collectables);
  endpoint->collectables_.push_back(std::make_shared<BuildInfo>(program));
  endpoint->collectables_.push_back(std::make_shared<ProcessMetrics>());
  std::vector<int> ports;
  try {
    CivetCallbacks callbacks;
    callbacks.begin_request = AnswerHead;
    endpoint->exposer_ = std::make_unique<prometheus::Exposer>(Options(listen), &callbacks);
    ports = endpoint->exposer_->GetListeningPorts();
  } catch (const std::exception&) {
    // CivetWeb throws if it cannot listen. The error below is clearer than its "null context ...".
  }
  if (ports.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot serve metrics on ", listen,
                     ": the port is in use, or this machine has no such address; choose another "
                     "with --metrics_listen HOST:PORT"));
  }
  endpoint->address_ =
      absl::StrCat(absl::string_view(listen).substr(0, listen.rfind(':')), ":", ports.front());
  for (const std::shared_ptr<prometheus::Collectable>& collectable : endpoint->collectables_) {
    endpoint->exposer_->RegisterCollectable(collectable);
  }
  return endpoint;
}

HttpEndpoint::~HttpEndpoint() {
  if (exposer_ == nullptr || address_.empty()) return;
  // CivetWeb's thread checks its stop flag every 2 s and after each connection. Connect until it
  // has seen the flag.
  absl::Notification stopped;
  std::thread waker([&] {
    do {
      Knock(address_);
    } while (!stopped.WaitForNotificationWithTimeout(absl::Milliseconds(20)));
  });
  exposer_.reset();
  stopped.Notify();
  waker.join();
}

}  // namespace lengthwise::monitoring
