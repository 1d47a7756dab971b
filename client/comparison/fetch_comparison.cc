#include "client/comparison/fetch_comparison.h"

#include <utility>

#include "client/comparison/comparison.h"
#include "client/comparison/length_accuracies.h"
#include "client/comparison/protocol_difference.h"
#include "client/connection/names.h"

namespace lengthwise::client {

absl::StatusOr<ComparisonDocument> FetchComparison(Connection& connection,
                                                   const v1::Experiment& experiment,
                                                   const v1::SummarizeExperimentResponse& summary,
                                                   PublishedTable table) {
  auto differences = DifferencesFromProtocol(experiment.specification(), table);
  if (!differences.ok()) return differences.status();
  LengthAccuracyStatistics at_lengths;
  if (table.HasLengthAccuracies()) {
    const auto trials = connection.ListTrials(experiment.name(), "");
    if (!trials.ok()) return trials.status();
    const auto accuracies =
        connection.QueryLengthAccuracies(experiment.name(), /*include_intervals=*/false);
    if (!accuracies.ok()) return accuracies.status();
    at_lengths = SumUpLengthAccuracies(table, summary, *trials, *accuracies);
  }
  auto comparison = Compare(std::move(table), experiment.specification(), summary, at_lengths);
  if (!comparison.ok()) return comparison.status();
  return ComparisonDocument{.experiment = ShortName(experiment.name()),
                            .comparison = *std::move(comparison),
                            .differences = *std::move(differences)};
}

}  // namespace lengthwise::client
