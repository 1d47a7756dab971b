// Slurm's commands, as the fleet uses them: squeue, sbatch, scancel.
#ifndef LENGTHWISE_CLIENT_FLEET_SLURM_H_
#define LENGTHWISE_CLIENT_FLEET_SLURM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/fleet/fleet_plan.h"
#include "rpc/channel.h"

namespace lengthwise::client {

// What the job script is made of.
struct SlurmJob {
  std::string worker_program;
  rpc::ChannelOptions channel;
  int32_t max_pack_size = 1;
  // Name of the experiment that the workers are dedicated to; empty: none.
  std::string experiment;
  // As the worker's --exit_when_idle takes it.
  std::string idle = "60s";
};

// The batch script. It runs the worker under srun, without which preemption's SIGTERM does not
// reach it, and gives it a lifetime that ends up to 18 % before the job's, by the job's number, so
// that jobs that were submitted together do not end together.
std::string JobScript(const SlurmJob& job);

// The number of the job that a worker runs in, by the id that JobScript gives it; absent for other
// workers.
std::optional<int64_t> JobOfWorker(absl::string_view worker_id);

// Understands the output of `squeue --format=%i|%T|%r|%e`. INVALID_ARGUMENT for other text.
absl::StatusOr<std::vector<FleetJob>> ParseJobs(absl::string_view squeue_output);

// Calls the programs in PATH for the user's jobs of one name. Errors have the program's own words;
// NOT_FOUND where there is no such program.
class Slurm {
 public:
  Slurm(std::string job_name, std::string log_directory)
      : job_name_(std::move(job_name)), log_directory_(std::move(log_directory)) {}

  // With those that ended lately.
  absl::StatusOr<std::vector<FleetJob>> ListJobs() const;
  // FAILED_PRECONDITION where no node could ever run the job. sbatch itself takes some of these and
  // lets them wait for ever.
  absl::Status Check(const std::string& script, const std::vector<std::string>& arguments) const;
  // The job's number. `arguments` are sbatch's.
  absl::StatusOr<int64_t> Submit(const std::string& script,
                                 const std::vector<std::string>& arguments) const;
  // Cancels what waits, and asks the workers of what runs to drain.
  absl::Status Drain() const;
  // The last line that a job's own program wrote, and not Slurm; empty where there is none.
  std::string LastLine(int64_t job) const;

 private:
  // What sbatch says to the script with these and our own arguments.
  absl::StatusOr<std::string> Sbatch(const std::string& script,
                                     std::vector<std::string> arguments) const;

  const std::string job_name_;
  const std::string log_directory_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_FLEET_SLURM_H_
