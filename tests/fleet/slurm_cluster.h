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
  // where this machine cannot have it, because its packages or control groups are missing: the test
  // is to be skipped. Other errors are failures.
  static absl::StatusOr<std::unique_ptr<SlurmCluster>> Start();
  // Cancels all jobs, waits until they are gone, ends the daemons and deletes the directory.
  ~SlurmCluster();

  // What a process needs to use this cluster.
  const std::vector<std::pair<std::string, std::string>>& environment() const {
    return environment_;
  }
  // Runs one of Slurm's commands and returns what it wrote. A test fails where the command does.
  std::string Run(std::vector<std::string> command) const;
  // "JOB STATE" of the jobs of one name that wait or run, each with a newline behind it.
  std::string JobsLeft(const std::string& name) const;
  // The daemons' logs, for a test that fails.
  std::string Logs() const;

 private:
  SlurmCluster() = default;
  absl::Status Launch();
  void StopDaemons();
  // Fails as soon as a daemon ends.
  absl::Status Await(const std::string& what, const std::function<bool()>& condition) const;

  // Short: munge's socket is in it.
  std::string directory_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<std::unique_ptr<platform::ChildProcess>> daemons_;
};

}  // namespace lengthwise::fleet

#endif  // LENGTHWISE_TESTS_FLEET_SLURM_CLUSTER_H_
