// Scrapes an endpoint as Prometheus does, for tests.
#ifndef LENGTHWISE_MONITORING_SCRAPE_H_
#define LENGTHWISE_MONITORING_SCRAPE_H_

#include <string>

namespace lengthwise::monitoring {

// Returns the body of GET http://ADDRESS/metrics. `address` is a local port, "127.0.0.1:PORT". Adds
// a test failure if the status is not 200.
std::string Scrape(const std::string& address);

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_SCRAPE_H_
