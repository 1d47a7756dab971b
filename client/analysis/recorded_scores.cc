#include "client/analysis/recorded_scores.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::client {

absl::StatusOr<RecordedScores> FetchRecordedScores(Connection& connection,
                                                   const std::vector<PlotExperiment>& experiments) {
  RecordedScores scores;
  for (const PlotExperiment& experiment : experiments) {
    // One trial's name asks for it alone.
    auto events = connection.QueryAnalyses(experiment.trials.size() == 1
                                               ? experiment.trials[0].name()
                                               : absl::StrCat("experiments/", experiment.name));
    if (!events.ok()) return events.status();
    for (v1::Event& event : *events) {
      if (event.has_noise_accuracies()) {
        scores.noise[event.trial()] = std::move(*event.mutable_noise_accuracies());
      } else if (event.has_sequence_scores()) {
        v1::SequenceScores& of_length = *event.mutable_sequence_scores();
        scores.sequences[event.trial()][of_length.length()] = std::move(of_length);
      }
    }
  }
  return scores;
}

}  // namespace lengthwise::client
