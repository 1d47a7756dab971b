// HTTP endpoint from which Prometheus scrapes a program: http://HOST:PORT/metrics.
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
  // Serves on "HOST:PORT" (an IPv4 address or "[IPv6]"; port 0 takes a free one) until destroyed.
  // Exports `collectables` (read at every scrape), lengthwise_build_info for `program`, and the
  // process's use of CPU, memory and descriptors. FAILED_PRECONDITION if the address cannot be
  // bound.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(
      const std::string& listen, absl::string_view program,
      std::vector<std::shared_ptr<prometheus::Collectable>> collectables);

  // Returns promptly, although CivetWeb alone can take 2 s to notice a stop request.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // Bound address, "HOST:PORT".
  const std::string& address() const { return address_; }

 private:
  HttpEndpoint() = default;

  // Owned here because the exposer holds only weak pointers.
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;
  std::string address_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_HTTP_ENDPOINT_H_
