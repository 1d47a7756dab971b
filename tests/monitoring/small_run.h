// A small real experiment that runs for as long as a test looks at it: the real server and the real
// worker with their metrics.
#ifndef LENGTHWISE_TESTS_MONITORING_SMALL_RUN_H_
#define LENGTHWISE_TESTS_MONITORING_SMALL_RUN_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "platform/child_process.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::monitoring_test {

// A worker trains a trial that does not end before the test; another one has succeeded, a third has
// failed for its loss was not finite, more wait. Failures end the test program with a message.
class SmallRun {
 public:
  // Files go to `directory`.
  explicit SmallRun(const std::string& directory);

  // "HOST:PORT".
  const std::string& server_metrics() const { return server_.metrics_address(); }
  const std::string& worker_metrics() const { return worker_metrics_; }
  // The id of the experiment that has a running trial.
  const std::string& experiment() const { return experiment_; }

  // Waits until `done` says so.
  void Await(const std::string& what, const std::function<bool()>& done);

 private:
  end_to_end::Server server_;
  std::unique_ptr<platform::ChildProcess> worker_;
  std::string worker_metrics_;
  std::string experiment_;
};

}  // namespace lengthwise::monitoring_test

#endif  // LENGTHWISE_TESTS_MONITORING_SMALL_RUN_H_
