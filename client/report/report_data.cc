#include "client/report/report_data.h"

#include <utility>

#include "client/comparison/fetch_comparison.h"
#include "client/comparison/published_table.h"
#include "client/connection/names.h"
#include "client/plotting/plot_data.h"

namespace lengthwise::client {
namespace {

absl::Status AddComparisons(Connection& connection, const std::vector<std::string>& keys,
                            ReportData& data) {
  for (const std::string& key : keys) {
    auto table = FindPublishedTable(key);
    if (!table.ok()) return table.status();
    auto document = FetchComparison(connection, data.experiment, data.summary, *std::move(table));
    if (!document.ok()) return document.status();
    data.comparisons.push_back(*std::move(document));
  }
  if (!keys.empty()) return absl::OkStatus();
  auto tables = PublishedTables();
  if (!tables.ok()) return tables.status();
  for (PublishedTable& table : *tables) {
    if (table.protocol != data.experiment.specification().protocol()) continue;
    // Nobody asked for this table: where it cannot be compared there is nothing to say.
    auto document = FetchComparison(connection, data.experiment, data.summary, std::move(table));
    if (document.ok() && document->comparison.cells_run > 0) {
      data.comparisons.push_back(*std::move(document));
    }
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
