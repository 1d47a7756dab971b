// What Prometheus scrapes of a program: http://HOST:PORT/metrics.
#ifndef LENGTHWISE_MONITORING_HTTP_ENDPOINT_H_
#define LENGTHWISE_MONITORING_HTTP_ENDPOINT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "prometheus/collectable.h"
#include "prometheus/exposer.h"

namespace lengthwise::monitoring {

class HttpEndpoint {
 public:
  // Serves on "HOST:PORT" (an IPv4 address or "[IPv6]"; port 0 takes a free one) until destroyed:
  // `collectables`, which are read at every scrape, lengthwise_build_info for `program`, and what
  // the process uses. FAILED_PRECONDITION when the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(
      const std::string& listen, absl::string_view program,
      std::vector<std::shared_ptr<prometheus::Collectable>> collectables);

  // Returns soon: CivetWeb by itself may take 2 s to notice that it shall stop.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // "HOST:PORT" with the port that was bound.
  const std::string& address() const { return address_; }

 private:
  HttpEndpoint() = default;

  // The exposer keeps none of them alive.
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;
  std::string address_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_HTTP_ENDPOINT_H_
