// What Prometheus sees, for tests.
#ifndef LENGTHWISE_MONITORING_SCRAPE_H_
#define LENGTHWISE_MONITORING_SCRAPE_H_

#include <string>

namespace lengthwise::monitoring {

// The answer to GET http://ADDRESS/metrics; `address` is a port on this machine, "127.0.0.1:PORT".
// A test fails where it is not 200.
std::string Scrape(const std::string& address);

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_SCRAPE_H_
