// HTTP endpoint from which Prometheus scrapes a program, http://HOST:PORT/metrics, or which a
// supervisor probes.
//
// One thread serves all connections, so that a client that sends or reads slowly holds nobody up.
#ifndef LENGTHWISE_MONITORING_HTTP_ENDPOINT_H_
#define LENGTHWISE_MONITORING_HTTP_ENDPOINT_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "monitoring/families.h"
#include "platform/descriptors.h"

namespace lengthwise::monitoring {

class HttpEndpoint {
 public:
  // Maximum number of open connections, and of those from one address. Beyond it, the oldest one
  // that has not sent its request ends.
  static constexpr size_t kMostConnections = 64;
  static constexpr size_t kMostOfAnAddress = 16;
  // Time for a request to arrive, and for its answer to be read.
  static constexpr std::chrono::seconds kRequestPatience{2};
  static constexpr std::chrono::seconds kAnswerPatience{10};

  // Serves /metrics on "HOST:PORT" (an IPv4 address or "[IPv6]"; port 0 takes a free one) until
  // destroyed. Exports `sources` (read at every scrape, on the endpoint's thread),
  // lengthwise_build_info for `program`, and the process's use of CPU, memory and descriptors.
  // FAILED_PRECONDITION if the address cannot be bound; the message names the flag.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(const std::string& listen,
                                                             absl::string_view program,
                                                             std::vector<Source> sources);
  // Serves /healthz, whose answer is "ok", for probes.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> StartProbe(const std::string& listen);

  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // Bound address, "HOST:PORT".
  const std::string& address() const { return address_; }

 private:
  struct Connection;
  using Connections = std::list<Connection>;
  using Page = std::function<std::string()>;

  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Serve(const std::string& listen,
                                                             absl::string_view flag,
                                                             std::string path, Page page);
  HttpEndpoint(platform::Descriptor listener, std::string path, Page page);

  void Run();
  void Accept(Connections& connections);
  // Reads and writes what is possible now. False at the end.
  bool Proceed(Connection& connection);
  std::string Answer(absl::string_view request) const;

  const platform::Descriptor listener_;
  const platform::Descriptor stop_;  // an eventfd
  const std::string path_;
  const Page page_;
  std::string address_;
  std::thread thread_;
};

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_HTTP_ENDPOINT_H_
