// `lengthwise export NAME --format FORMAT`: what was measured, for other tools.
#include "client/export/export.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/rendering/numbers.h"
#include "client/terminal/interrupt.h"

namespace lengthwise::client {
namespace {

struct ExportCommandOptions {
  std::string name;
  ExportOptions options;
};

absl::StatusOr<int> RunExport(Program& program, const ExportCommandOptions& command) {
  auto connection = program.Connect();
  if (!connection.ok()) return connection.status();
  const InterruptGuard interrupts;
  const auto exported = Export(**connection, command.name, command.options, [&](int done, int all) {
    if (program.is_terminal && all > 1) {
      program.out() << "\r" << done << " of " << all << " trials\x1b[K" << std::flush;
    }
    return interrupts.count() == 0;
  });
  if (program.is_terminal) program.out() << "\r\x1b[K" << std::flush;
  if (interrupts.count() > 0) {
    program.err() << "lengthwise: interrupted; nothing was written\n";
    return kInterrupted;
  }
  if (!exported.ok()) return exported.status();
  program.out() << exported->path << "\n";
  if (!exported->absent.empty()) {
    program.err() << "lengthwise: "
                  << Counted(static_cast<int64_t>(exported->absent.size()), "trial is",
                             "trials are")
                  << " not in it; of the first: " << exported->absent[0] << "\n";
  }
  if (exported->damaged.empty()) return kSuccess;
  for (const std::string& why : exported->damaged) {
    program.err() << "lengthwise: left out: " << why << "\n";
  }
  return kFailure;
}

}  // namespace

void AddExport(CLI::App& app, Program& program) {
  auto options = std::make_shared<ExportCommandOptions>();
  CLI::App* command = program.AddCommand(
      app, "export", "Writes what was measured, or the models, for other tools", kServerGroup,
      "lengthwise export quickstart-1 --format csv\n"
      "lengthwise export quickstart-1 --format tensorboard -o logs/quickstart\n"
      "lengthwise export quickstart-1/0 --format safetensors -o model.safetensors",
      [&program, options] { return RunExport(program, *options); });
  command->add_option("name", options->name, "An experiment, or EXPERIMENT/TRIAL")
      ->required()
      ->type_name("");
  std::vector<std::string> names;
  std::string formats;
  for (const ExportFormat& format : ExportFormats()) {
    names.push_back(format.name);
    absl::StrAppend(&formats, formats.empty() ? "" : "; ", format.name, ": ", format.description);
  }
  command->add_option("--format", options->options.format, formats)
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("FORMAT");
  command
      ->add_option("-o,--out", options->options.path,
                   "The file or directory to make; default: the name and the format, here")
      ->type_name("PATH");
  command->add_flag("--force", options->options.replace,
                    "Replace what an export wrote there before");
  program.AddServerOption(command);
  program.AddDataDirOption(command);
}

}  // namespace lengthwise::client
