// `lengthwise workers`: lists workers.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/connection/names.h"
#include "client/display/numbers.h"
#include "client/display/table.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<int> Workers(Program& program) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(auto workers, connection->ListWorkers());
  if (!program.output_is_table()) {
    Records records{.columns = {"worker", "alive", "stopped", "device", "host", "threads",
                                "max_pack_size", "trials", "steps_per_second",
                                "model_steps_per_second", "last_heartbeat_time", "kernels",
                                "fault"}};
    for (const v1::Worker& worker : workers.workers()) {
      records.rows.push_back(
          {worker.worker_id(), worker.alive(), worker.stopped(), worker.provenance().device(),
           worker.provenance().host(), int64_t{worker.provenance().threads()},
           int64_t{worker.max_pack_size()}, absl::StrJoin(worker.trials(), " "),
           worker.steps_per_second(), worker.model_steps_per_second(),
           absl::FormatTime(absl::RFC3339_sec,
                            absl::FromUnixSeconds(worker.last_heartbeat_time().seconds()),
                            absl::UTCTimeZone()),
           worker.provenance().kernels(), worker.fault()});
    }
    program.Write(records);
    return kSuccess;
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
  program.out() << table.Render(program.width(), program.palette());
  for (const v1::Worker& worker : workers.workers()) {
    if (worker.fault().empty() || !worker.alive()) continue;
    program.out() << "\n"
                  << worker.worker_id() << " takes only some of the trials: " << worker.fault()
                  << "\n";
  }
  return kSuccess;
}

}  // namespace

void AddWorkers(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "workers", "Lists workers and their trials, or starts and stops them", kServerGroup,
      "lengthwise workers\nlengthwise workers --output json\n"
      "lengthwise workers up --slurm -- --gres=gpu:1 --time=12:00:00",
      [&program] { return Workers(program); });
  program.AddServerOption(command);
  program.AddOutputOption(command);
  AddFleetCommands(command, program);
}

}  // namespace lengthwise::client
