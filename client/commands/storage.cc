// `lengthwise storage` and `lengthwise backup`: show and back up the server's data.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/table.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

absl::Time TimeOf(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds());
}

absl::StatusOr<int> ShowStorage(Program& program) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto storage, connection->GetStorage());
  if (!program.output_is_table()) {
    Records records{.columns = {"what", "name", "bytes", "count"}};
    records.rows.push_back({"database", storage.data_dir(), storage.database_bytes(), Value()});
    records.rows.push_back(
        {"artifacts", storage.data_dir(), storage.artifact_bytes(), storage.artifacts()});
    records.rows.push_back({"free", storage.data_dir(), storage.free_bytes(), Value()});
    for (const v1::Backup& backup : storage.backups()) {
      records.rows.push_back({"backup", backup.name(), backup.bytes(), Value()});
    }
    program.Write(records);
    return kSuccess;
  }
  program.out() << program.palette()(Paint::kBold, storage.data_dir()) << "\n"
                << "  database   " << FormatBytes(storage.database_bytes()) << "\n"
                << "  artifacts  " << FormatBytes(storage.artifact_bytes()) << " in "
                << FormatCount(storage.artifacts()) << "\n"
                << "  free       " << FormatBytes(storage.free_bytes()) << "\n";
  if (storage.backups().empty()) return kSuccess;
  program.out() << "\n";
  Table table({{.header = "backup"},
               {.header = "made"},
               {.header = "size", .align = Table::Align::kRight}});
  for (const v1::Backup& backup : storage.backups()) {
    table.AddRow(
        {Table::Cell(backup.name(), Paint::kBold),
         absl::FormatTime("%Y-%m-%d %H:%M:%S", TimeOf(backup.create_time()), absl::LocalTimeZone()),
         FormatBytes(backup.bytes())});
  }
  program.out() << table.Render(program.width(), program.palette());
  return kSuccess;
}

absl::StatusOr<int> BackUp(Program& program, const std::string& name) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  int64_t bytes = 0;
  const auto path = connection->BackUp(name, [&](const v1::BackUpResponse& response) {
    bytes = response.copied_bytes();
    if (!program.is_terminal) return;
    program.out() << "\r" << FormatBytes(response.copied_bytes()) << " of "
                  << FormatBytes(response.total_bytes()) << "\x1b[K" << std::flush;
  });
  if (program.is_terminal) program.out() << "\r\x1b[K";
  if (!path.ok()) return path.status();
  program.out() << "Backed up " << FormatBytes(bytes) << " to " << *path
                << " on the server's own disk: copy it to another machine. To restore it:\n"
                << "  lengthwise_server --data_dir NEW --restore " << *path << "\n"
                << "If the server has --artifacts, back that place up, too, which holds the "
                   "checkpoints, and add --artifacts and --take_over_artifacts.\n";
  return kSuccess;
}

}  // namespace

void AddStorage(CLI::App& app, Program& program) {
  CLI::App* command =
      program.AddCommand(app, "storage", "Shows the server's disk usage", kServerGroup,
                         "lengthwise storage\nlengthwise storage --output json",
                         [&program] { return ShowStorage(program); });
  program.AddServerOption(command);
  program.AddDataDirOption(command);
  program.AddOutputOption(command);
}

void AddBackup(CLI::App& app, Program& program) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      program.AddCommand(app, "backup", "Backs up the server's data while it runs", kServerGroup,
                         "lengthwise backup\nlengthwise backup before-upgrade",
                         [&program, name] { return BackUp(program, *name); });
  command->add_option("name", *name, "Backup name (default: timestamp)")->type_name("");
  program.AddServerOption(command);
  program.AddDataDirOption(command);
}

}  // namespace lengthwise::client
