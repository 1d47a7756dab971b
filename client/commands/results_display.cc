#include "client/commands/results_display.h"

#include "absl/strings/str_cat.h"
#include "client/connection/names.h"
#include "client/display/accuracy_summary.h"
#include "client/display/numbers.h"
#include "client/watching/live_lines.h"
#include "platform/status_macros.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

constexpr size_t kMostCurves = 6;
constexpr int kChartHeight = 11;
constexpr int kChartWidth = 100;

int TrialCount(const v1::TrialCounts& trials) {
  return trials.queued() + trials.running() + trials.succeeded() + trials.failed() +
         trials.cancelled();
}

// All tasks of a specification are of one kind.
bool LearnsText(const v1::ExperimentSpecification& specification) {
  const tasks::TaskEntry* task =
      specification.tasks().empty() ? nullptr : tasks::FindTask(specification.tasks(0).name());
  return task != nullptr && task->kind == tasks::TaskKind::kText;
}

}  // namespace

absl::Status PrintResults(Program& program, Connection& connection,
                          const v1::Experiment& experiment, bool with_intervals) {
  std::ostream& out = program.out();
  if (program.output == "json" || program.output == "csv") {
    ASSIGN_OR_RETURN(auto trials, connection.ListTrials(experiment.name(), ""));
    ASSIGN_OR_RETURN(auto accuracies,
                     connection.QueryLengthAccuracies(experiment.name(), with_intervals));
    std::vector<v1::Event> analyses;
    if (LearnsText(experiment.specification())) {
      ASSIGN_OR_RETURN(analyses, connection.QueryAnalyses(experiment.name()));
    }
    const bool csv = program.output == "csv";
    WriteAccuracies(trials, accuracies, analyses, csv ? RecordFormat::kCsv : RecordFormat::kJson,
                    out);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(auto cells,
                   connection.SummarizeExperiment(experiment.name(), /*omit_lengths=*/false));
  const AccuracySummary summary = Summarize(experiment.specification(), cells);
  if (program.output == "markdown" || program.output == "latex") {
    const Table table = MakeAccuracyTable(summary, program.width());
    out << (program.output == "latex" ? table.RenderLatex() : table.RenderMarkdown());
    return absl::OkStatus();
  }
  const Palette palette = program.palette();
  std::string subject;
  if (!summary.rows.empty()) {
    bool one_task = true;
    for (const AccuracyRow& row : summary.rows) {
      one_task = one_task && row.task == summary.rows[0].task;
    }
    subject = one_task ? absl::StrCat(" · ", summary.rows[0].task) : "";
  }
  out << palette(Paint::kBold, ShortName(experiment.name())) << subject << " · "
      << DescribeCounts(experiment.trials()) << "\n\n";
  if (summary.rows.empty()) {
    const v1::TrialCounts& trials = experiment.trials();
    if (trials.queued() + trials.running() > 0) {
      out << "No trial has been evaluated in full yet; `lengthwise watch "
          << ShortName(experiment.name()) << "` shows how far they are.\n";
    } else {
      out << "No trial succeeded; `lengthwise show " << ShortName(experiment.name())
          << "` says why.\n";
    }
    return absl::OkStatus();
  }
  out << Caption(summary) << "\n\n"
      << MakeAccuracyTable(summary, program.width(), /*with_sparklines=*/true)
             .Render(program.width(), palette)
      << "\n";
  if (summary.lengths.size() > 1) {
    if (summary.rows.size() > kMostCurves) {
      out << "The " << kMostCurves << " best on unseen lengths, of " << summary.rows.size()
          << ":\n";
    }
    out << MakeAccuracyChart(summary, kMostCurves)
               .Render(std::min(program.width() - 1, kChartWidth), kChartHeight, palette);
  }
  if (summary.missing_trials > 0) {
    out << "\n"
        << FormatCount(summary.missing_trials) << " of "
        << Counted(TrialCount(experiment.trials()), "trial")
        << (summary.missing_trials == 1 ? " is not in the table: it has"
                                        : " are not in the table: they have")
        << " not succeeded.\n";
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::client
