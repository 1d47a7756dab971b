// A real Slurm for a test: its controller, two nodes of one CPU each, and munge.
#ifndef LENGTHWISE_TESTS_FLEET_SLURM_CLUSTER_H_
#define LENGTHWISE_TESTS_FLEET_SLURM_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/child_process.h"

namespace lengthwise::fleet {

class SlurmCluster {
 public:
  // Starts it in a new directory and waits until both nodes are idle. UNAVAILABLE, with the reason,
  // if this machine lacks the packages or control groups; skip the test then. Other errors are
  // failures.
  static absl::StatusOr<std::unique_ptr<SlurmCluster>> Start();
  // Cancels all jobs, waits until they are gone, stops the daemons and deletes the directory.
  ~SlurmCluster();

  // Environment variables that a process needs to use this cluster.
  const std::vector<std::pair<std::string, std::string>>& environment() const {
    return environment_;
  }
  // Runs a Slurm command and returns its output. A failing command fails the test.
  std::string Run(std::vector<std::string> command) const;
  // "JOB STATE" of each pending or running job with this name, one a line.
  std::string JobsLeft(const std::string& name) const;
  // The daemons' logs, for a failing test.
  std::string Logs() const;

 private:
  SlurmCluster() = default;
  absl::Status Launch();
  void StopDaemons();
  // Fails as soon as a daemon ends.
  absl::Status Await(const std::string& what, const std::function<bool()>& condition) const;

  // Short, because the path of munge's socket is limited.
  std::string directory_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<std::unique_ptr<platform::ChildProcess>> daemons_;
};

}  // namespace lengthwise::fleet

#endif  // LENGTHWISE_TESTS_FLEET_SLURM_CLUSTER_H_
