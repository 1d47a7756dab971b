// `lengthwise storage` and `lengthwise backup`: show and back up the server's data.
#include <string>

#include "absl/strings/str_join.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/display/table.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"

namespace lengthwise::client {
namespace {

absl::StatusOr<int> ShowStorage(Program& program) {
  ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
  ASSIGN_OR_RETURN(const auto storage, connection->Call<v1::Storage>(v1::GetStorageRequest()));
  if (!program.output_is_table()) {
    Records records{.columns = {"what", "name", "bytes", "count"}};
    records.rows.push_back({"database", storage.data_dir(), storage.database_bytes(), Value()});
    records.rows.push_back(
        {"artifacts", storage.data_dir(), storage.artifact_bytes(), storage.artifacts()});
    records.rows.push_back({"free", storage.data_dir(), storage.free_bytes(), Value()});
    if (storage.has_elsewhere_free_bytes()) {
      records.rows.push_back(
          {"free", storage.checkpoints_elsewhere(), storage.elsewhere_free_bytes(), Value()});
    }
    for (const v1::Backup& backup : storage.backups()) {
      records.rows.push_back({"backup", backup.name(), backup.bytes(), Value()});
    }
    for (const v1::OwnerUsage& owner : storage.usage()) {
      records.rows.push_back({"owner", owner.owner(), owner.bytes(), owner.experiments()});
    }
    return program.Write(records);
  }
  program.out() << program.palette()(Paint::kBold, storage.data_dir()) << "\n"
                << "  database   " << FormatBytes(storage.database_bytes()) << "\n"
                << "  artifacts  " << FormatBytes(storage.artifact_bytes()) << " in "
                << FormatCount(storage.artifacts()) << "\n"
                << "  free       " << FormatBytes(storage.free_bytes()) << "\n";
  if (!storage.checkpoints_elsewhere().empty()) {
    program.out() << "  checkpoints are in " << storage.checkpoints_elsewhere();
    if (storage.has_elsewhere_free_bytes()) {
      program.out() << ", " << FormatBytes(storage.elsewhere_free_bytes()) << " free";
    }
    program.out() << "\n";
  }
  if (!storage.usage().empty()) {
    program.out() << "\n";
    PrintUsage(program, storage.usage());
  }
  if (storage.backups().empty()) return kSuccess;
  program.out() << "\n";
  Table table({{.header = "backup"},
               {.header = "made"},
               {.header = "size", .align = Table::Align::kRight}});
  for (const v1::Backup& backup : storage.backups()) {
    table.AddRow({Table::Cell(backup.name(), Paint::kBold),
                  FormatLocalTime(ToTime(backup.create_time())), FormatBytes(backup.bytes())});
  }
  return program.Write(table);
}

struct BackUpOptions {
  std::string name;
  int32_t keep = 0;
};

absl::StatusOr<int> BackUp(Program& program, const BackUpOptions& options) {
  v1::BackUpRequest request;
  request.set_name(options.name);
  request.set_keep(options.keep);
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  const auto backup = connection->BackUp(request, [&](const v1::BackUpResponse& response) {
    if (!program.redraws()) return;
    program.out() << "\r" << FormatBytes(response.copied_bytes()) << " of "
                  << FormatBytes(response.total_bytes()) << "\x1b[K" << std::flush;
  });
  if (program.redraws()) program.out() << "\r\x1b[K";
  if (!backup.ok()) return backup.status();
  const std::string& elsewhere = backup->checkpoints_elsewhere();
  program.out() << "Backed up " << FormatBytes(backup->copied_bytes()) << " to " << backup->path()
                << " on the server's own disk: copy it to another machine.";
  if (!elsewhere.empty()) {
    program.out() << " It lists the checkpoints and does not contain them: back up " << elsewhere
                  << ", too.";
  }
  program.out() << " To restore it:\n  lengthwise_server --data_dir NEW --restore "
                << platform::ShellWord(backup->path());
  if (!elsewhere.empty()) {
    program.out() << " --artifacts " << platform::ShellWord(elsewhere) << " --take_over_artifacts";
  }
  program.out() << "\n";
  if (backup->deleted_size() > 0) {
    program.out() << "Deleted " << absl::StrJoin(backup->deleted(), ", ") << ".\n";
  }
  return kSuccess;
}

}  // namespace

void AddStorage(Command root, Program& program) {
  const Command command =
      program.AddCommand(root, "storage", "Shows the server's disk usage", kServerGroup,
                         "lengthwise storage\nlengthwise storage --output json",
                         [&program] { return ShowStorage(program); });
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command);
}

void AddBackup(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "backup", "Backs up the server's data while it runs", kServerGroup,
      "lengthwise backup\nlengthwise backup --keep 7\nlengthwise backup before-upgrade", BackUp);
  command.AddOption("[name]", options->name, "Backup name (default: timestamp)");
  command
      .AddOption(
          "--keep N", options->keep,
          "Deletes older backups that have timestamps as names, once this one is complete: N "
          "are left. Default: all")
      .Positive();
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
