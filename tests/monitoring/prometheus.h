// A real Prometheus that scrapes a run twice a second, with the rules of deploy/prometheus.
#ifndef LENGTHWISE_TESTS_MONITORING_PROMETHEUS_H_
#define LENGTHWISE_TESTS_MONITORING_PROMETHEUS_H_

#include <memory>
#include <string>

#include "platform/child_process.h"

namespace lengthwise::monitoring_test {

class Prometheus {
 public:
  // Returns when it serves. Its files go to `directory`. Failures end the test program with a
  // message.
  Prometheus(const std::string& directory, const std::string& server_metrics,
             const std::string& worker_metrics);

  // "http://127.0.0.1:PORT".
  const std::string& url() const { return url_; }

 private:
  std::unique_ptr<platform::ChildProcess> process_;
  std::string url_;
};

}  // namespace lengthwise::monitoring_test

#endif  // LENGTHWISE_TESTS_MONITORING_PROMETHEUS_H_
