// Wraps the Slurm commands that the fleet uses: squeue, sbatch and scancel.
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

// Parameters of the job script.
struct SlurmJob {
  std::string worker_program;
  rpc::ChannelOptions channel;
  int32_t max_pack_size = 1;
  // Name of the experiment that the workers are dedicated to; empty: none.
  std::string experiment;
  // Value of the worker's --exit_when_idle.
  std::string idle = "60s";
};

// Returns the batch script. It runs the worker under srun, because otherwise the SIGTERM of a
// preemption does not reach it. The worker's lifetime ends up to 18 % before the job's time limit,
// depending on the job's number, so that jobs submitted together do not end together.
std::string JobScript(const SlurmJob& job);

// Returns the job number from a worker id that JobScript assigned; nullopt for other workers.
std::optional<int64_t> JobOfWorker(absl::string_view worker_id);

// Parses the output of `squeue --format=%i|%T|%r|%e`, without tasks of arrays and parts of
// heterogeneous jobs, which this program does not submit. INVALID_ARGUMENT for other text.
absl::StatusOr<std::vector<FleetJob>> ParseJobs(absl::string_view squeue_output);

// Calls the programs in PATH for the user's jobs of one name. Errors quote the program's message;
// NOT_FOUND if the program is missing.
class Slurm {
 public:
  Slurm(std::string job_name, std::string log_directory)
      : job_name_(std::move(job_name)), log_directory_(std::move(log_directory)) {}

  // Includes jobs that ended recently.
  absl::StatusOr<std::vector<FleetJob>> ListJobs() const;
  // FAILED_PRECONDITION if no node can ever run the job. sbatch itself accepts some of these jobs
  // and leaves them pending forever.
  absl::Status Check(const std::string& script, const std::vector<std::string>& arguments) const;
  // Submits a job and returns its number. `arguments` are passed to sbatch.
  absl::StatusOr<int64_t> Submit(const std::string& script,
                                 const std::vector<std::string>& arguments) const;
  // Cancels pending jobs and drains the workers of running jobs.
  absl::Status Drain() const;
  // The last line of a job's log that is not from Slurm; empty if there is none.
  std::string LastLine(int64_t job) const;

 private:
  // Runs sbatch on the script with `arguments` and our own, and returns its output.
  absl::StatusOr<std::string> Sbatch(const std::string& script,
                                     std::vector<std::string> arguments) const;

  const std::string job_name_;
  const std::string log_directory_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_FLEET_SLURM_H_
