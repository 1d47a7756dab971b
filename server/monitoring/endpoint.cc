#include "server/monitoring/endpoint.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"

namespace lengthwise::server {
namespace {

// Threads that answer scrapes.
constexpr size_t kThreads = 2;

// Connects to "HOST:PORT" and hangs up. What goes wrong is of no interest.
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

absl::StatusOr<std::unique_ptr<MonitoringEndpoint>> MonitoringEndpoint::Start(
    const std::string& listen, absl::string_view version, Coordinator& coordinator) {
  std::unique_ptr<MonitoringEndpoint> endpoint(new MonitoringEndpoint(version, coordinator));
  std::vector<int> ports;
  try {
    endpoint->exposer_ = std::make_unique<prometheus::Exposer>(listen, kThreads);
    ports = endpoint->exposer_->GetListeningPorts();
  } catch (const std::exception&) {
    // CivetWeb's way of saying that it cannot listen; its text ("null context ...") says less than
    // the line below.
  }
  if (ports.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot serve metrics on ", listen,
        ": the port is in use, or this machine has no such address; choose another address"));
  }
  endpoint->address_ =
      absl::StrCat(absl::string_view(listen).substr(0, listen.rfind(':')), ":", ports.front());
  endpoint->exposer_->RegisterCollectable(endpoint->registry_);
  endpoint->exposer_->RegisterCollectable(endpoint->statistics_);
  return endpoint;
}

MonitoringEndpoint::MonitoringEndpoint(absl::string_view version, Coordinator& coordinator)
    : registry_(std::make_shared<prometheus::Registry>()),
      rpc_metrics_(*registry_),
      statistics_(std::make_shared<StatisticsMetrics>(coordinator)) {
  prometheus::BuildGauge()
      .Name("lengthwise_build_info")
      .Help("Always 1; the labels say which server this is.")
      .Register(*registry_)
      .Add({{"version", std::string(version)}})
      .Set(1);
}

MonitoringEndpoint::~MonitoringEndpoint() {
  if (exposer_ == nullptr || address_.empty()) return;
  // CivetWeb's thread looks at its stop flag every 2 s and after each connection; connections are
  // made until it has seen the flag.
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

}  // namespace lengthwise::server
