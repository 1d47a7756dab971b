// `lengthwise workers`: lists workers. `workers drain|resume` and `queue pause|resume`: hold new
// leases back.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/table.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<int> Workers(Program& program) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(auto workers,
                   connection->Call<v1::ListWorkersResponse>(v1::ListWorkersRequest()));
  if (!program.output_is_table()) {
    Records records{.columns = {"worker", "alive", "stopped", "device", "host", "threads",
                                "max_pack_size", "trials", "steps_per_second",
                                "model_steps_per_second", "last_heartbeat_time", "kernels", "fault",
                                "hold", "clock_ahead_seconds"}};
    for (const v1::Worker& worker : workers.workers()) {
      records.rows.push_back(
          {worker.worker_id(), worker.alive(), worker.stopped(), worker.provenance().device(),
           worker.provenance().host(), int64_t{worker.provenance().threads()},
           int64_t{worker.max_pack_size()}, absl::StrJoin(worker.trials(), " "),
           worker.steps_per_second(), worker.model_steps_per_second(),
           FormatUtcTime(ToTime(worker.last_heartbeat_time())), worker.provenance().kernels(),
           worker.fault(), worker.hold(), worker.clock_ahead_seconds()});
    }
    return program.Write(records);
  }
  if (workers.workers().empty()) {
    program.out() << "No workers yet. Start one: `lengthwise_worker --server "
                  << connection->address() << "`\n";
    return kSuccess;
  }
  // A CPU has one kind.
  const bool has_kernels =
      std::any_of(workers.workers().begin(), workers.workers().end(),
                  [](const v1::Worker& worker) { return !worker.provenance().kernels().empty(); });
  std::vector<Table::Column> columns = {{.header = "worker", .shrinks_to = 12},
                                        {.header = "state"},
                                        {.header = "device", .shrinks_to = 8},
                                        {.header = "last seen"},
                                        {.header = "steps/s", .align = Table::Align::kRight},
                                        {.header = "models/s", .align = Table::Align::kRight},
                                        {.header = "trials", .shrinks_to = 12}};
  if (has_kernels) columns.push_back({.header = "kernels", .shrinks_to = 12});
  Table table(std::move(columns));
  for (const v1::Worker& worker : workers.workers()) {
    const bool busy = worker.trials_size() > 0;
    std::string trials = busy ? ShortName(worker.trials(0)) : "";
    if (worker.trials_size() > 1) {
      absl::StrAppend(&trials, " and ", worker.trials_size() - 1, " more");
    }
    std::vector<Table::Cell> row = {
        Table::Cell(worker.worker_id(), Paint::kBold),
        worker.stopped()          ? Table::Cell("stopped", Paint::kDim)
        : !worker.alive()         ? Table::Cell("lost", Paint::kRed)
        : !worker.hold().empty()  ? Table::Cell(busy ? "draining" : "drained", Paint::kDim)
        : busy                    ? Table::Cell("busy", Paint::kCyan)
        : !worker.fault().empty() ? Table::Cell("unfit", Paint::kRed)
                                  : Table::Cell("idle", Paint::kGreen),
        worker.provenance().device(),
        FormatAge(absl::Now() - absl::FromUnixSeconds(worker.last_heartbeat_time().seconds())),
        busy ? FormatRate(worker.steps_per_second()) : "–",
        busy ? FormatRate(worker.model_steps_per_second()) : "–",
        trials};
    if (has_kernels) row.emplace_back(worker.provenance().kernels());
    table.AddRow(std::move(row));
  }
  program.Write(table);
  TellPause(program, workers.queue_pause());
  for (const v1::Worker& worker : workers.workers()) {
    if (!worker.hold().empty()) {
      program.out() << "\n"
                    << worker.worker_id() << " is " << worker.hold()
                    << "; `lengthwise workers resume " << worker.worker_id() << "` ends that\n";
    }
    const absl::Duration ahead = absl::Seconds(worker.clock_ahead_seconds());
    if (worker.alive() && absl::AbsDuration(ahead) >= kWrongClock) {
      program.out() << "\nThe clock of " << worker.worker_id() << " is "
                    << FormatClockDifference(ahead) << " the server's; set both by NTP\n";
    }
    if (worker.fault().empty() || !(worker.alive() || worker.stopped())) continue;
    program.out() << "\n"
                  << worker.worker_id()
                  << (worker.stopped() ? " stopped: " : " takes only some of the trials: ")
                  << worker.fault() << "\n";
  }
  return kSuccess;
}

absl::StatusOr<int> Hold(Program& program, const v1::HoldLeasesRequest& request) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  RETURN_IF_ERROR(connection->Call<v1::HoldLeasesResponse>(request).status());
  if (request.all()) {
    program.out() << "Paused the queue: running trials go on, and no other starts.\n";
  } else {
    program.out() << "Drains " << request.worker()
                  << ": it stores checkpoints, gives its trials back and gets no others.\n";
  }
  return kSuccess;
}

absl::StatusOr<int> Resume(Program& program, const v1::ResumeLeasesRequest& request) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  RETURN_IF_ERROR(connection->Call<v1::ResumeLeasesResponse>(request).status());
  program.out() << (request.all() ? "The queue goes on.\n"
                                  : absl::StrCat(request.worker(), " gets trials again.\n"));
  return kSuccess;
}

void AddReason(Command command, v1::HoldLeasesRequest& request) {
  command.AddOption("--reason TEXT", *request.mutable_reason(),
                    "Reason that `workers` and `list` show");
}

void AddWorker(Command command, std::string& worker) {
  command.AddOption("worker", worker, "Id of the worker, as `lengthwise workers` shows it");
}

}  // namespace

void TellPause(Program& program, const std::string& why) {
  if (why.empty()) return;
  program.out() << "\nThe queue is " << why
                << ". No trial starts until `lengthwise queue resume`.\n";
}

void AddQueue(Command root, Program& program) {
  const Command queue = root.AddCommand("queue", "Pauses and resumes the start of trials");
  queue.Group(kServerGroup).RequireCommand();
  queue.Footer(
      "Examples:\n"
      "  lengthwise queue pause --reason \"new disks\"\n"
      "  lengthwise queue resume");
  const auto [pause, held] = program.AddCommand(
      queue, "pause", "Lets running trials go on and starts no others, also after a restart",
      kNestedGroup, "lengthwise queue pause --reason \"new disks\"", Hold);
  held->set_all(true);
  AddReason(pause, *held);
  program.AddServerOption(pause);
  const auto [resume, resumed] = program.AddCommand(
      queue, "resume", "Starts trials again", kNestedGroup, "lengthwise queue resume", Resume);
  resumed->set_all(true);
  program.AddServerOption(resume);
}

void AddWorkers(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "workers", "Lists workers and their trials, or starts and stops them", kServerGroup,
      "lengthwise workers\nlengthwise workers --output json\n"
      "lengthwise workers drain n07-cuda0-4711 --reason \"new disks\"\n"
      "lengthwise workers up --slurm -- --gres=gpu:1 --time=12:00:00",
      [&program] { return Workers(program); });
  program.AddServerOption(command);
  program.AddOutputOption(command);
  AddFleetCommands(command, program);

  const auto [drain, drained] = program.AddCommand(
      command, "drain", "Has a worker give back its trials, and gives it no others", kNestedGroup,
      "lengthwise workers drain n07-cuda0-4711 --reason \"new disks\"", Hold);
  AddWorker(drain, *drained->mutable_worker());
  program.AddServerOption(drain);
  AddReason(drain, *drained);
  const auto [resume, resumed] =
      program.AddCommand(command, "resume", "Gives a drained worker trials again", kNestedGroup,
                         "lengthwise workers resume n07-cuda0-4711", Resume);
  AddWorker(resume, *resumed->mutable_worker());
  program.AddServerOption(resume);
}

}  // namespace lengthwise::client
