#include "client/report/report_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/connection/names.h"
#include "client/plotting/plot_data.h"
#include "client/python/python_program.h"

namespace lengthwise::client {
namespace {

absl::Status AddComparisons(Connection& connection, const std::vector<std::string>& keys,
                            ReportData& data) {
  for (const std::string& key : keys.empty() ? std::vector<std::string>{"all"} : keys) {
    const auto html =
        PythonOutput({"results", data.experiment.name(), "--compare", key, "--output", "html"},
                     connection.channel_options());
    if (!html.ok()) return html.status();
    absl::StrAppend(&data.comparisons, *html);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReportData> FetchReport(Connection& connection, const std::string& name,
                                       const std::vector<std::string>& tables) {
  ReportData data;
  auto experiment = FindExperiment(connection, name);
  if (!experiment.ok()) return experiment.status();
  // The listing that a short name was found in leaves out what only this call tells.
  experiment = connection.GetExperiment(experiment->name());
  if (!experiment.ok()) return experiment.status();
  data.experiment = *std::move(experiment);
  auto summary = connection.SummarizeExperiment(data.experiment.name(), /*omit_lengths=*/false);
  if (!summary.ok()) return summary.status();
  data.summary = *std::move(summary);
  auto plots = FetchExperiments(connection, {data.experiment.name()}, TrialFilter(),
                                /*with_intervals=*/true);
  if (!plots.ok()) return plots.status();
  data.plots = *std::move(plots);
  absl::Status status = FetchLosses(connection, data.plots);
  if (status.ok()) status = FetchAttention(connection, /*length=*/0, data.plots);
  if (status.ok()) status = FetchProjections(connection, data.plots);
  if (status.ok()) status = AddComparisons(connection, tables, data);
  if (!status.ok()) return status;
  return data;
}

}  // namespace lengthwise::client
