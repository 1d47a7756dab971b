#include "client/commands/results_display.h"

#include "absl/strings/str_cat.h"
#include "client/connection/names.h"
#include "client/rendering/accuracy_summary.h"
#include "client/rendering/numbers.h"
#include "client/watching/live_lines.h"

namespace lengthwise::client {
namespace {

constexpr size_t kMostCurves = 6;
constexpr int kChartHeight = 11;
constexpr int kChartWidth = 100;

}  // namespace

absl::Status PrintResults(Program& program, Connection& connection,
                          const v1::Experiment& experiment, bool with_intervals) {
  auto trials = connection.ListTrials(experiment.name(), "");
  if (!trials.ok()) return trials.status();
  auto accuracies = connection.QueryLengthAccuracies(experiment.name(), with_intervals);
  if (!accuracies.ok()) return accuracies.status();
  if (!program.output_is_table()) {
    program.Write(AccuracyRecords(*trials, *accuracies));
    return absl::OkStatus();
  }
  const Palette palette = program.palette();
  std::ostream& out = program.out();
  const AccuracySummary summary = Summarize(*trials, *accuracies);
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
    out << "No trial has been evaluated in full yet; `lengthwise watch "
        << ShortName(experiment.name()) << "` shows how far they are.\n";
    return absl::OkStatus();
  }
  out << "Token accuracy by input length, per cent (" << FormatCount(summary.sequences)
      << " sequences per length; trained on lengths up to " << summary.seen_up_to << ")\n\n"
      << RenderAccuracyTable(summary, program.width(), palette) << "\n";
  if (summary.lengths.size() > 1) {
    if (summary.rows.size() > kMostCurves) {
      out << "The " << kMostCurves << " best on lengths not seen, of " << summary.rows.size()
          << ":\n";
    }
    out << MakeAccuracyChart(summary, kMostCurves)
               .Render(std::min(program.width() - 1, kChartWidth), kChartHeight, palette);
  }
  if (summary.missing_trials > 0) {
    out << "\n"
        << summary.missing_trials << " of " << trials->size()
        << " trials are not in the table: they have no final evaluation.\n";
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::client
