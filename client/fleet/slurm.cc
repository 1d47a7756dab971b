#include "client/fleet/slurm.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "platform/child_process.h"
#include "platform/descriptors.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

constexpr absl::string_view kWorkerPrefix = "slurm-";
// A busy Slurm controller answers late.
constexpr absl::Duration kPatience = absl::Minutes(1);

// The part of the script before the worker's command line. Slurm before 23.02 does not set
// SLURM_JOB_END_TIME, but squeue prints the end.
constexpr absl::string_view kScriptBegin = R"sh(#!/bin/sh
# Written by `lengthwise workers up --slurm`.
end=$SLURM_JOB_END_TIME
[ -n "$end" ] || end=$(date -d "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)" +%s 2>/dev/null)
if [ -n "$end" ]; then
  left=$((end - $(date +%s)))
  lifetime="--lifetime $((left - left * (SLURM_JOB_ID % 10) / 50))s"
fi
export LENGTHWISE_CONFIG=
exec srun --ntasks=1 ${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK} )sh";

// Runs a program and returns its output if it succeeded.
absl::StatusOr<std::string> Run(std::vector<std::string> arguments) {
  const std::string program = arguments[0];
  auto output = platform::ChildProcess::Run(std::move(arguments), kPatience);
  if (absl::IsNotFound(output.status())) {
    return absl::NotFoundError(absl::StrCat("there is no program ", program,
                                            " in PATH; run this on a machine with Slurm's "
                                            "commands"));
  }
  if (!output.ok()) return output.status();
  if (!output->exit.has_value()) {
    return absl::DeadlineExceededError(
        absl::StrCat(program, " did not end within ", absl::FormatDuration(kPatience)));
  }
  if (!output->exit->ok()) {
    const std::string said(absl::StripAsciiWhitespace(output->text));
    return absl::FailedPreconditionError(absl::StrCat(
        program, " ", said.empty() ? output->exit->ToString() : absl::StrCat("says: ", said)));
  }
  return std::move(output->text);
}

FleetJob::State StateOf(absl::string_view state) {
  // Requeued jobs are pending again.
  for (const absl::string_view pending :
       {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}) {
    if (state == pending) return FleetJob::State::kPending;
  }
  for (const absl::string_view running : {"RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED",
                                          "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"}) {
    if (state == running) return FleetJob::State::kRunning;
  }
  // Preemption is no failure of the worker.
  for (const absl::string_view cancelled : {"CANCELLED", "PREEMPTED", "REVOKED"}) {
    if (state == cancelled) return FleetJob::State::kCancelled;
  }
  for (const absl::string_view failed : {"FAILED", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL"}) {
    if (state == failed) return FleetJob::State::kFailed;
  }
  return FleetJob::State::kEnded;
}

}  // namespace

std::string JobScript(const SlurmJob& job) {
  std::vector<std::string> arguments = {
      platform::ShellWord(job.worker_program),
      "--server",
      platform::ShellWord(job.channel.server),
      "--worker_id",
      absl::StrCat("\"", kWorkerPrefix, "$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}\""),
      "--max_pack_size",
      absl::StrCat(job.max_pack_size),
      "--exit_when_idle",
      platform::ShellWord(job.idle)};
  const auto add = [&arguments](const char* option, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(option);
    arguments.push_back(platform::ShellWord(value));
  };
  add("--token_file", job.channel.token_file);
  add("--tls_ca", job.channel.tls_ca);
  add("--tls_certificate", job.channel.tls_certificate);
  add("--tls_key", job.channel.tls_key);
  add("--tls_server_name", job.channel.tls_server_name);
  add("--experiment", job.experiment);
  return absl::StrCat(kScriptBegin, absl::StrJoin(arguments, " "),
                      " $lifetime $LENGTHWISE_WORKER_FLAGS\n");
}

std::optional<int64_t> JobOfWorker(absl::string_view worker_id) {
  int64_t job = 0;
  if (!absl::ConsumePrefix(&worker_id, kWorkerPrefix)) return std::nullopt;
  if (!absl::SimpleAtoi(worker_id.substr(0, worker_id.find('-')), &job)) return std::nullopt;
  return job;
}

absl::StatusOr<std::vector<FleetJob>> ParseJobs(absl::string_view squeue_output) {
  std::vector<FleetJob> jobs;
  for (const absl::string_view line : absl::StrSplit(squeue_output, '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '|');
    if (fields.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("squeue wrote \"", line, "\"; expected JOB|STATE|REASON|END"));
    }
    FleetJob job;
    // Others may submit arrays ("7_[0-3]") or heterogeneous jobs ("7+1") of this name.
    if (!absl::SimpleAtoi(fields[0], &job.id)) continue;
    job.state = StateOf(fields[1]);
    job.reason = std::string(fields[2]);
    // For a running job this is its time limit, or "N/A" without one.
    if (absl::Time end; absl::ParseTime("%Y-%m-%dT%H:%M:%S", fields[3], absl::LocalTimeZone(), &end,
                                        /*err=*/nullptr)) {
      job.ended = end;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<FleetJob>> Slurm::ListJobs() const {
  ASSIGN_OR_RETURN(const std::string output,
                   Run({"squeue", "--all", "--me", "--name", job_name_, "--states=all",
                        "--noheader", "--format=%i|%T|%r|%e"}));
  return ParseJobs(output);
}

absl::StatusOr<std::string> Slurm::Sbatch(const std::string& script,
                                          std::vector<std::string> arguments) const {
  std::string path =
      absl::StrCat(std::filesystem::temp_directory_path().string(), "/lengthwise_slurm_XXXXXX");
  const platform::Descriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (!file.is_open()) return platform::FileError(errno, "make", path);
  const absl::Cleanup deleted = [&path] { unlink(path.c_str()); };
  std::ofstream(path) << script;
  std::vector<std::string> command = {"sbatch", "--no-requeue", "--open-mode=append", "--output",
                                      absl::StrCat(log_directory_, "/%j.log")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // The last --job-name wins, and ListJobs finds the jobs by this name.
  command.insert(command.end(), {"--parsable", "--job-name", job_name_, path});
  return Run(std::move(command));
}

absl::Status Slurm::Check(const std::string& script,
                          const std::vector<std::string>& arguments) const {
  std::vector<std::string> test = {"--test-only"};
  test.insert(test.end(), arguments.begin(), arguments.end());
  const absl::Status status = Sbatch(script, std::move(test)).status();
  // Other refusals may be temporary, such as busy or down nodes.
  if (absl::StrContains(status.message(), "Requested node configuration is not available")) {
    return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Slurm::Submit(const std::string& script,
                                      const std::vector<std::string>& arguments) const {
  RETURN_IF_ERROR(platform::CreateDirectories(log_directory_));
  ASSIGN_OR_RETURN(const std::string output, Sbatch(script, arguments));
  // The last line, after warnings, is "JOB" or "JOB;CLUSTER".
  int64_t job = 0;
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(output), '\n');
  const absl::string_view number = lines.back().substr(0, lines.back().find(';'));
  if (!absl::SimpleAtoi(number, &job)) {
    return absl::InternalError(
        absl::StrCat("sbatch wrote \"", lines.back(), "\", no job's number"));
  }
  return job;
}

absl::Status Slurm::Drain() const {
  RETURN_IF_ERROR(Run({"scancel", "--me", "--name", job_name_, "--state", "PENDING"}).status());
  // Signals the job steps, not the batch script.
  return Run({"scancel", "--me", "--name", job_name_, "--state", "RUNNING", "--signal", "TERM"})
      .status();
}

std::string Slurm::LastLine(int64_t job) const {
  std::ifstream file(absl::StrCat(log_directory_, "/", job, ".log"));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "srun:") || absl::StartsWith(line, "slurmstepd")) continue;
    if (!absl::StripAsciiWhitespace(line).empty()) last = line;
  }
  return last;
}

}  // namespace lengthwise::client
