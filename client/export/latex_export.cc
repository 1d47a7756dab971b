#include "client/export/latex_export.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/connection/names.h"
#include "client/python/python_program.h"
#include "client/rendering/accuracy_summary.h"
#include "client/rendering/table.h"

namespace lengthwise::client {
namespace {

// Of the columns of numbers that a page takes; lengths are averaged in groups that fit.
constexpr int kPageColumns = 110;

std::string AccuracyTable(const v1::Experiment& experiment, const AccuracySummary& summary) {
  return absl::StrCat(
      "\\begin{table}\n\\centering\n", MakeAccuracyTable(summary, kPageColumns).RenderLatex(),
      "\\caption{", EscapeLatex(ShortName(experiment.name())), ": ", EscapeLatex(Caption(summary)),
      ".}\n\\label{tab:", ShortName(experiment.name()), "}\n\\end{table}\n");
}

}  // namespace

absl::Status LatexExporter::Begin() {
  if (subject_.whole_experiment) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("latex writes the tables of an experiment; export ",
                   ShortName(subject_.experiment.name()), ", or its trial as csv"));
}

absl::Status LatexExporter::AddTrial(const v1::Trial&) { return absl::OkStatus(); }

absl::Status LatexExporter::Finish() {
  const v1::Experiment& experiment = subject_.experiment;
  const auto cells = connection_.SummarizeExperiment(experiment.name(), /*omit_lengths=*/false);
  if (!cells.ok()) return cells.status();
  const AccuracySummary summary = Summarize(experiment.specification(), *cells);
  if (summary.rows.empty()) {
    return absl::NotFoundError(absl::StrCat("no trial of ", ShortName(experiment.name()),
                                            " has been evaluated in full, so there is no table"));
  }
  std::ostringstream out;
  out << "% " << ShortName(experiment.name()) << ", by lengthwise export.\n"
      << AccuracyTable(experiment, summary);
  const auto comparisons =
      PythonOutput({"results", experiment.name(), "--compare", "all", "--output", "latex"},
                   connection_.channel_options());
  if (!comparisons.ok()) return comparisons.status();
  if (!comparisons->empty()) out << "\n" << *comparisons;
  return output_.Write("", out.str());
}

}  // namespace lengthwise::client
