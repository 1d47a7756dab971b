// A small real experiment that runs for the whole test: the real server and worker with their
// metrics.
#ifndef LENGTHWISE_TESTS_MONITORING_SMALL_RUN_H_
#define LENGTHWISE_TESTS_MONITORING_SMALL_RUN_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "platform/child_process.h"
#include "tests/end_to_end/programs.h"

namespace lengthwise::monitoring_test {

// One trial trains until the end of the test, one has succeeded, one has failed because its loss
// was not finite, and more are queued. Failures end the test program with a message.
class SmallRun {
 public:
  // Files go to `directory`.
  explicit SmallRun(const std::string& directory);

  // "HOST:PORT".
  const std::string& server_metrics() const { return server_.metrics_address(); }
  const std::string& worker_metrics() const { return worker_metrics_; }
  // The id of the experiment with a running trial.
  const std::string& experiment() const { return experiment_; }

  // Makes a call, with the usage of all owners.
  void ListExperiments();
  // Waits until `done` returns true. `what` names it in a failure.
  void Await(const std::string& what, const std::function<bool()>& done);

 private:
  end_to_end::Server server_;
  std::unique_ptr<platform::ChildProcess> worker_;
  std::string worker_metrics_;
  std::string experiment_;
};

}  // namespace lengthwise::monitoring_test

#endif  // LENGTHWISE_TESTS_MONITORING_SMALL_RUN_H_
