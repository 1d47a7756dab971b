// `lengthwise report EXPERIMENT -o report.html`: everything about an experiment in one file.
#include "client/report/report.h"

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/connection/names.h"
#include "client/rendering/user_file.h"
#include "client/terminal/browser.h"

namespace lengthwise::client {
namespace {

struct ReportCommandOptions {
  std::string experiment;
  std::string out;
  std::vector<std::string> tables;
  bool open = false;
};

absl::StatusOr<int> Report(Program& program, const ReportCommandOptions& options) {
  if (!options.out.empty()) {
    if (absl::Status status = CheckWritable(options.out); !status.ok()) return status;
  }
  auto connection = program.Connect();
  if (!connection.ok()) return connection.status();
  const auto data = FetchReport(**connection, options.experiment, options.tables);
  if (!data.ok()) return data.status();
  const auto html = RenderReport(*data, {.now = absl::Now()});
  if (!html.ok()) return html.status();
  std::string path = options.out;
  if (path.empty()) {
    const auto file = FileNameOf(data->experiment.name());
    if (!file.ok()) return file.status();
    path = absl::StrCat(*file, ".html");
  }
  if (absl::Status status = WriteForUser(path, *html); !status.ok()) return status;
  program.out() << path << "\n" << std::flush;
  if (options.open) {
    const absl::Status opened = OpenInBrowser(path, std::getenv);
    if (!opened.ok()) return opened;
  }
  return kSuccess;
}

}  // namespace

void AddReport(CLI::App& app, Program& program) {
  auto options = std::make_shared<ReportCommandOptions>();
  CLI::App* command = program.AddCommand(
      app, "report", "Writes everything about an experiment into one HTML file", kServerGroup,
      "lengthwise report quickstart-1\n"
      "lengthwise report table1 --compare randomized_pe/table_1 -o table1.html\n"
      "\n"
      "The file needs no network and no other file: tables, beside published ones where the\n"
      "experiment follows a paper's protocol, figures (drawn by gnuplot), attention maps with a\n"
      "choice of layers and heads, failures and their reasons, and the whole specification.",
      [&program, options] { return Report(program, *options); });
  command->add_option("experiment", options->experiment, "Its name, or its specification's")
      ->required()
      ->type_name("");
  command->add_option("-o,--out", options->out, "The file; default: EXPERIMENT.html here")
      ->type_name("FILE");
  command
      ->add_option("--compare", options->tables,
                   "Beside this published table, PAPER/TABLE; may be repeated; default: those of "
                   "which a cell was run")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command->add_flag("--open", options->open, "Then show it, with $BROWSER or xdg-open");
  program.AddServerOption(command);
  program.AddDataDirOption(command);
}

}  // namespace lengthwise::client
