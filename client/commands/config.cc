// `lengthwise config`: shows the settings in effect and their sources.
#include <cstdlib>

#include "client/commands/commands.h"
#include "client/display/table.h"
#include "platform/status_macros.h"
#include "rpc/settings.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<int> Config(Program& program) {
  ASSIGN_OR_RETURN(const rpc::Settings settings, program.Settings());
  if (!program.output_is_table()) {
    Records records{.columns = {"setting", "value", "origin"}};
    for (const rpc::SettingKind& kind : rpc::kSettings) {
      const rpc::Setting& setting = settings[kind.name];
      records.rows.push_back({kind.name, setting.value, setting.origin});
    }
    program.Write(records);
    return kSuccess;
  }
  Table table({{.header = "setting"},
               {.header = "value", .shrinks_to = 16},
               {.header = "from", .shrinks_to = 16}});
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    const rpc::Setting& setting = settings[kind.name];
    table.AddRow({Table::Cell(kind.name, Paint::kBold), setting.value.empty() ? "–" : setting.value,
                  setting.origin});
  }
  program.out() << table.Render(program.width(), program.palette());
  const std::string file =
      rpc::SettingsFile([](const char* name) -> const char* { return std::getenv(name); });
  if (settings.file.empty() && !file.empty()) {
    program.out() << program.Wrapped("There is no configuration file; its place is " + file + ".")
                  << "\n";
  }
  return kSuccess;
}

}  // namespace

void AddConfig(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "config", "Shows the settings in effect and their sources", kServerGroup,
      "lengthwise config\nlengthwise config --output json", [&program] { return Config(program); });
  program.AddServerOption(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
