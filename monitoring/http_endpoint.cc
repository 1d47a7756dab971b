#include "monitoring/http_endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "platform/process_usage.h"
#include "platform/version.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace lengthwise::monitoring {
namespace {

using prometheus::MetricFamily;
using std::chrono::steady_clock;

// Far more than Prometheus sends.
constexpr size_t kMostRequestBytes = 8 << 10;
// The kernel's memory for an answer that a client does not read.
constexpr int kBufferBytes = 256 << 10;
// Time for a client to hang up after it has its answer.
constexpr std::chrono::seconds kFarewell{1};

// Exports the process's resource usage under the standard names of Prometheus' client libraries,
// such as process_cpu_seconds_total.
Families ProcessMetrics() {
  const platform::ProcessUsage usage = platform::ReadProcessUsage();
  Families families;
  const auto add = [&](const char* name, double value) {
    AddValue({}, value, families.emplace_back(MakeFamily(name)));
  };
  add("process_cpu_seconds_total", usage.cpu_seconds);
  add("process_resident_memory_bytes", static_cast<double>(usage.resident_bytes));
  add("process_start_time_seconds", usage.start_time_seconds);
  add("process_open_fds", static_cast<double>(usage.open_files));
  add("process_max_fds", static_cast<double>(usage.max_open_files));
  return families;
}

Families BuildInfo(const std::string& program) {
  MetricFamily family = MakeFamily("lengthwise_build_info");
  AddValue({{"program", program},
            {"version", platform::kVersion},
            {"revision", platform::kSourceRevision}},
           1, family);
  return {std::move(family)};
}

// Not open if the address cannot be bound.
platform::Descriptor ListenOn(absl::string_view listen) {
  const size_t colon = std::min(listen.rfind(':'), listen.size());
  const std::string host(absl::StripSuffix(absl::StripPrefix(listen.substr(0, colon), "["), "]"));
  const std::string port(absl::StripPrefix(listen.substr(colon), ":"));
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  platform::Descriptor listener(
      socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool listens = bind(listener.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                       ::listen(listener.get(), SOMAXCONN) == 0;
  freeaddrinfo(found);
  return listens ? std::move(listener) : platform::Descriptor();
}

int PortOf(int listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// The bytes of the address, without the port.
std::string HostBytes(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
    const char* const bytes = reinterpret_cast<const char*>(&address);
    // A client can use every address of its /64 network.
    return IN6_IS_ADDR_V4MAPPED(&address) ? std::string(bytes + 12, 4) : std::string(bytes, 8);
  }
  const in_addr& address = reinterpret_cast<const sockaddr_in&>(from).sin_addr;
  return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
}

std::string Response(absl::string_view status, absl::string_view body, bool with_body = true) {
  return absl::StrCat("HTTP/1.1 ", status,
                      "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                      "Content-Length: ",
                      body.size(), "\r\nConnection: close\r\n\r\n", with_body ? body : "");
}

}  // namespace

struct HttpEndpoint::Connection {
  platform::Descriptor socket;
  std::string host;
  steady_clock::time_point deadline;
  std::string request;
  std::string answer;  // empty until the request is complete
  size_t sent = 0;

  bool is_answered() const { return !answer.empty() && sent == answer.size(); }
};

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(const std::string& listen,
                                                                  absl::string_view program,
                                                                  std::vector<Source> sources) {
  sources.push_back([program = std::string(program)] { return BuildInfo(program); });
  sources.push_back(ProcessMetrics);
  return Serve(listen, "--metrics_listen", "/metrics", [sources = std::move(sources)] {
    Families families;
    for (const Source& read : sources) {
      Families more = read();
      std::move(more.begin(), more.end(), std::back_inserter(families));
    }
    return prometheus::TextSerializer().Serialize(families);
  });
}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::StartProbe(const std::string& listen) {
  return Serve(listen, "--probe_listen", "/healthz", [] { return std::string("ok\n"); });
}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Serve(const std::string& listen,
                                                                  absl::string_view flag,
                                                                  std::string path, Page page) {
  platform::Descriptor listener = ListenOn(listen);
  if (!listener.is_open()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot serve ", flag == "--metrics_listen" ? "metrics" : "probes", " on ", listen,
        ": the port is in use, or this machine has no such address; choose another with ", flag,
        " HOST:PORT"));
  }
  std::unique_ptr<HttpEndpoint> endpoint(
      new HttpEndpoint(std::move(listener), std::move(path), std::move(page)));
  endpoint->address_ = absl::StrCat(absl::string_view(listen).substr(0, listen.rfind(':')), ":",
                                    PortOf(endpoint->listener_.get()));
  endpoint->thread_ = std::thread([serving = endpoint.get()] { serving->Run(); });
  return endpoint;
}

HttpEndpoint::HttpEndpoint(platform::Descriptor listener, std::string path, Page page)
    : listener_(std::move(listener)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      path_(std::move(path)),
      page_(std::move(page)) {}

HttpEndpoint::~HttpEndpoint() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void HttpEndpoint::Run() {
  Connections connections;
  while (true) {
    std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    auto wake = steady_clock::time_point::max();
    for (const Connection& connection : connections) {
      const bool writes = !connection.answer.empty() && !connection.is_answered();
      polled.push_back({connection.socket.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
      wake = std::min(wake, connection.deadline);
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wake - steady_clock::now());
    const int milliseconds = connections.empty() ? -1 : std::max<int>(0, wait.count());
    if (poll(polled.data(), polled.size(), milliseconds) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    // Of before the others are served: no client pays for their pages.
    const auto now = steady_clock::now();
    size_t index = 2;
    for (auto each = connections.begin(); each != connections.end(); ++index) {
      const bool goes_on = (polled[index].revents == 0 || Proceed(*each)) && now < each->deadline;
      each = goes_on ? std::next(each) : connections.erase(each);
    }
    if (polled[1].revents != 0) Accept(connections);
  }
}

void HttpEndpoint::Accept(Connections& connections) {
  // Bounded: a burst of new connections must not starve the others.
  for (int i = 0; i < 64; ++i) {
    sockaddr_storage from = {};
    socklen_t size = sizeof(from);
    platform::Descriptor socket(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      // Without a free descriptor or memory the listener stays readable.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      return;
    }
    const std::string host = HostBytes(from);
    const bool is_common =
        std::count_if(connections.begin(), connections.end(), [&](const Connection& other) {
          return other.host == host;
        }) >= static_cast<int64_t>(kMostOfAnAddress);
    if (is_common || connections.size() >= kMostConnections) {
      const auto idle =
          std::find_if(connections.begin(), connections.end(), [&](const Connection& other) {
            return other.answer.empty() && (!is_common || other.host == host);
          });
      if (idle == connections.end()) continue;
      connections.erase(idle);
    }
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
    connections.push_back({.socket = std::move(socket),
                           .host = host,
                           .deadline = steady_clock::now() + kRequestPatience});
  }
}

bool HttpEndpoint::Proceed(Connection& connection) {
  const int socket = connection.socket.get();
  if (connection.answer.empty() || connection.is_answered()) {
    char buffer[4096];
    const ssize_t count = recv(socket, buffer, sizeof(buffer), 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    if (connection.is_answered()) return true;
    connection.request.append(buffer, static_cast<size_t>(count));
    if (!absl::StrContains(connection.request, "\r\n\r\n")) {
      return connection.request.size() < kMostRequestBytes;
    }
    connection.answer = Answer(connection.request);
    connection.deadline = steady_clock::now() + kAnswerPatience;
  }
  while (connection.sent < connection.answer.size()) {
    const ssize_t count = send(socket, connection.answer.data() + connection.sent,
                               connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    connection.sent += static_cast<size_t>(count);
  }
  // Not closed at once: what the client still sends would destroy the end of its answer.
  shutdown(socket, SHUT_WR);
  connection.deadline = steady_clock::now() + kFarewell;
  return true;
}

std::string HttpEndpoint::Answer(absl::string_view request) const {
  const std::vector<absl::string_view> words =
      absl::StrSplit(request.substr(0, request.find("\r\n")), ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.")) {
    return Response("400 Bad Request", "expected: GET PATH HTTP/1.1\n");
  }
  const bool is_head = words[0] == "HEAD";
  if (words[0] != "GET" && !is_head) return Response("405 Method Not Allowed", "use GET\n");
  if (words[1].substr(0, words[1].find('?')) != path_) {
    return Response("404 Not Found", absl::StrCat("this port serves ", path_, "\n"), !is_head);
  }
  return Response("200 OK", page_(), !is_head);
}

}  // namespace lengthwise::monitoring
