// `lengthwise list`: lists experiments, newest first.
#include <memory>

#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/table.h"
#include "client/watching/lines.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<int> ListUsage(Program& program, const std::string& owner) {
  ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
  v1::ListExperimentsRequest request;
  request.set_page_size(1);
  request.set_owner(owner);
  request.set_include_usage(true);
  ASSIGN_OR_RETURN(const auto page, connection->Call<v1::ListExperimentsResponse>(request));
  if (program.output_is_table()) return PrintUsage(program, page.usage());
  Records records{
      .columns = {"owner", "experiments", "bytes", "trials", "steps", "worker_seconds"}};
  for (const v1::OwnerUsage& one : page.usage()) {
    records.rows.push_back({one.owner(), one.experiments(), one.bytes(), one.trials(), one.steps(),
                            one.worker_seconds()});
  }
  return program.Write(records);
}

absl::StatusOr<int> List(Program& program, size_t limit, const std::string& owner) {
  ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
  std::string pause;
  ASSIGN_OR_RETURN(auto experiments, connection->ListExperiments(limit, owner, &pause));
  if (!program.output_is_table()) {
    Records records{.columns = {"name", "owner", "description", "create_time", "trials", "queued",
                                "running", "succeeded", "failed", "cancelled"}};
    for (const v1::Experiment& experiment : experiments) {
      const v1::TrialCounts& counts = experiment.trials();
      records.rows.push_back(
          {experiment.name(), experiment.owner(), experiment.specification().description(),
           FormatUtcTime(ToTime(experiment.create_time())), AllTrials(counts),
           int64_t{counts.queued()}, int64_t{counts.running()}, int64_t{counts.succeeded()},
           int64_t{counts.failed()}, int64_t{counts.cancelled()}});
    }
    return program.Write(records);
  }
  if (experiments.empty() && !owner.empty()) {
    program.out() << platform::PrintableLine(owner)
                  << " has no experiments here; `lengthwise list` prints everybody's\n";
    return kSuccess;
  }
  if (experiments.empty()) {
    program.out() << "No experiments yet. Submit one: `lengthwise submit "
                     "experiments/quickstart.yaml`\n";
    return kSuccess;
  }
  Table table({{.header = "experiment", .shrinks_to = 16},
               {.header = "created"},
               {.header = "owner", .shrinks_to = 6},
               {.header = "trials", .align = Table::Align::kRight},
               {.header = "state", .shrinks_to = 12},
               {.header = "description", .shrinks_to = 10}});
  for (const v1::Experiment& experiment : experiments) {
    const v1::TrialCounts& counts = experiment.trials();
    const Paint paint = counts.failed() > 0          ? Paint::kRed
                        : UnendedTrials(counts) == 0 ? Paint::kGreen
                                                     : Paint::kCyan;
    table.AddRow(
        {Table::Cell(ShortName(experiment.name()), Paint::kBold),
         FormatAge(absl::Now() - absl::FromUnixSeconds(experiment.create_time().seconds())),
         experiment.owner(), FormatCount(AllTrials(counts)),
         Table::Cell(DescribeCounts(counts), paint), experiment.specification().description()});
  }
  program.Write(table);
  TellPause(program, pause);
  return kSuccess;
}

}  // namespace

int PrintUsage(Program& program, const google::protobuf::RepeatedPtrField<v1::OwnerUsage>& owners) {
  const auto right = Table::Align::kRight;
  Table table({{.header = "owner", .shrinks_to = 6},
               {.header = "experiments", .align = right},
               {.header = "disk", .align = right},
               {.header = "trials", .align = right},
               {.header = "steps", .align = right},
               {.header = "worker time", .align = right}});
  for (const v1::OwnerUsage& one : owners) {
    table.AddRow({Table::Cell(one.owner(), Paint::kBold), FormatCount(one.experiments()),
                  FormatBytes(one.bytes()), FormatCount(one.trials()), FormatCount(one.steps()),
                  FormatClock(absl::Seconds(one.worker_seconds()))});
  }
  return program.Write(table);
}

void AddList(Command root, Program& program) {
  auto limit = std::make_shared<size_t>(20);
  auto owner = std::make_shared<std::string>();
  auto usage = std::make_shared<bool>(false);
  const Command command = program.AddCommand(
      root, "list", "Lists experiments, newest first", kServerGroup,
      "lengthwise list\nlengthwise list --owner ada\nlengthwise list --limit 0 --output json\n"
      "lengthwise list --usage",
      [&program, limit, owner, usage] {
        return *usage ? ListUsage(program, *owner) : List(program, *limit, *owner);
      });
  command.AddOption("--limit N", *limit, "Maximum number of experiments; 0 lists all")
      .NonNegative()
      .ShowDefault();
  command.AddOption("--owner NAME", *owner, "Lists only experiments of this owner");
  command.AddFlag("--usage", *usage,
                  "Lists owners instead: the disk use of their experiments, and the trials, steps "
                  "and worker time that they have used");
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
