// `lengthwise submit SPEC`.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/estimate.h"
#include "client/commands/experiment_display.h"
#include "client/commands/program.h"
#include "client/commands/specification_file.h"
#include "client/display/numbers.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

struct SubmitOptions {
  std::string path;
  std::string request_id;
  std::string owner;
  bool dry_run = false;
  bool watch = false;
};

absl::StatusOr<int> DryRun(Program& program, const SubmitOptions& options,
                           const specification::Grid& grid) {
  auto connection = program.Connect();
  TimeEstimate estimate;
  if (connection.ok()) {
    estimate = EstimateTime(**connection, grid);
  } else {
    estimate.text = absl::StrCat("unknown: ", connection.status().message());
  }
  if (estimate.seconds.empty() && options.path != "-") {
    absl::StrAppend(&estimate.text, "; `lengthwise run ", platform::ShellWord(options.path),
                    " --dry_run` measures some steps on this machine");
  }
  if (program.output_is_table()) {
    program.out() << grid.specification.name() << ": " << DescribeGrid(grid)
                  << "; nothing was submitted\n";
  }
  PrintDryRun(program, grid, estimate);
  return kSuccess;
}

absl::StatusOr<int> Submit(Program& program, const SubmitOptions& options) {
  if (options.watch && (program.output == "csv" || program.output == kEvents)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output: got \"", program.output, "\", --watch prints table or json"));
  }
  // Validates first, so that mistakes are reported without a server.
  ASSIGN_OR_RETURN(auto resolved, ResolveFile(options.path));
  for (const std::string& warning : resolved.examples.warnings) {
    program.err() << "warning: " << warning << "\n";
  }
  if (options.dry_run) return DryRun(program, options, resolved.grid);

  ASSIGN_OR_RETURN(auto connection, program.Connect());
  v1::CreateExperimentRequest request;
  // Makes the call idempotent, so that it can be repeated when its answer is lost.
  request.set_request_id(options.request_id.empty() ? RandomRequestId() : options.request_id);
  request.set_owner(options.owner.empty() ? connection->DefaultOwner() : options.owner);
  SetSpecification(resolved, request);
  auto created = CreateExperiment(*connection, request, resolved.examples.files);
  if (absl::IsInvalidArgument(created.status()) &&
      absl::StrContains(created.status().message(), "unknown ")) {
    return absl::InvalidArgumentError(
        absl::StrCat(created.status().message(), "\nThis client accepts ", options.path,
                     ": the server is of an older release; upgrade the server"));
  }
  if (!created.ok()) return created.status();
  const std::string name = created->experiment().name();
  if (!program.output_is_table() && !options.watch) {
    return program.Write(
        {.columns = {"name", "trials", "packs"},
         .rows = {{name, int64_t{created->trial_count()}, int64_t{created->pack_count()}}}});
  }
  if (program.output_is_table()) {
    program.out() << "Submitted " << ShortName(name) << ": "
                  << Counted(created->trial_count(), "trial") << " in "
                  << Counted(created->pack_count(), "pack") << "\n";
  }
  if (options.watch) return WatchExperiment(program, *connection, {.experiment = name});
  const std::string where = program.WhereArguments();
  program.out() << "  lengthwise watch " << ShortName(name) << where << "    shows it live\n"
                << "  lengthwise results " << ShortName(name) << where << "  prints its results\n";
  return kSuccess;
}

}  // namespace

void AddSubmit(Command root, Program& program) {
  const auto [command, options] =
      program.AddCommand(root, "submit", "Submits a specification to a server", kServerGroup,
                         "lengthwise submit experiments/quickstart.yaml --watch\n"
                         "lengthwise submit experiments/quickstart.yaml --dry_run",
                         Submit);
  command.AddOption("spec", options->path,
                    "A file that ends in .yaml, .yml, .json, .textproto or .txtpb; - reads YAML or "
                    "JSON from standard input; or an installed specification (quickstart)");
  command.AddFlag(
      "--dry_run", options->dry_run,
      "Shows trials, steps and the time by the server's earlier trials, without submitting");
  command.AddFlag("--watch", options->watch, "Watches the experiment afterwards");
  command.AddOption("--request_id ID", options->request_id,
                    "Idempotency key: submitting again with the same id returns the same "
                    "experiment; default: random");
  command.AddOption("--owner NAME", options->owner,
                    "Owner of the experiment; default: the token's principal, or $USER");
  program.AddServerOption(command);
  program.AddOutputOption(command, {"table", "json", "csv", kEvents});
}

}  // namespace lengthwise::client
