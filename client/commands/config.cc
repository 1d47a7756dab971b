// `lengthwise config`: shows the settings in effect and their sources.
#include <cstdlib>

#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/display/table.h"
#include "client/display/terminal.h"
#include "platform/status_macros.h"
#include "rpc/settings.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<int> Show(Program& program, const rpc::Settings& settings) {
  if (!program.output_is_table()) {
    Records records{.columns = {"setting", "value", "origin"}};
    for (const rpc::SettingKind& kind : rpc::kSettings) {
      const rpc::Setting& setting = settings[kind.name];
      records.rows.push_back({kind.name, setting.value, setting.origin});
    }
    return program.Write(records);
  }
  Table table({{.header = "setting"},
               {.header = "value", .shrinks_to = 16},
               {.header = "from", .shrinks_to = 16}});
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    const rpc::Setting& setting = settings[kind.name];
    table.AddRow({Table::Cell(kind.name, Paint::kBold), setting.value.empty() ? "–" : setting.value,
                  setting.origin});
  }
  program.Write(table);
  const std::string file = rpc::SettingsFile(getenv);
  if (settings.file.empty() && !file.empty()) {
    program.out() << program.Wrapped("There is no configuration file; its place is " + file + ".")
                  << "\n";
  }
  return kSuccess;
}

// Shows the server of --data_dir and lets other programs use it until standard input ends.
absl::StatusOr<int> HoldServer(Program& program, rpc::Settings settings) {
  if (!program.until_eof) {
    return absl::InvalidArgumentError(
        "--data_dir needs --until_eof, since a private server may end with this command");
  }
  const InterruptGuard interrupts;
  program.EndWithInput();
  ASSIGN_OR_RETURN(const auto connection, program.ConnectToTrain());
  settings.all["server"] = {connection->address(), program.data_dir};
  RETURN_IF_ERROR(Show(program, settings).status());
  program.out() << std::flush;
  while (interrupts.count() == 0) {
    RETURN_IF_ERROR(program.private_service()->Check());
    absl::SleepFor(absl::Milliseconds(100));
  }
  return kSuccess;
}

absl::StatusOr<int> Config(Program& program) {
  ASSIGN_OR_RETURN(rpc::Settings settings, program.Settings());
  if (!program.data_dir.empty()) return HoldServer(program, settings);
  return Show(program, settings);
}

}  // namespace

void AddConfig(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "config", "Shows the settings in effect and their sources", kServerGroup,
      "lengthwise config\nlengthwise config --output json", [&program] { return Config(program); });
  program.AddServerOption(command);
  command
      .AddOption("--data_dir DIR", program.data_dir,
                 "Directory of `lengthwise run`, whose server is shown; with --until_eof")
      .NotEmpty();
  program.AddUntilEofOption(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
