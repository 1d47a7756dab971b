#include "client/export/trial_history.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace lengthwise::client {
namespace {

double Seconds(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
}

}  // namespace

absl::StatusOr<TrialHistory> FetchHistory(Connection& connection, const std::string& trial) {
  const auto events = connection.ListEvents(trial);
  if (!events.ok()) return events.status();
  TrialHistory history;
  for (const v1::Event& event : *events) {
    if (event.has_length_accuracies()) {
      const v1::LengthAccuracies& measured = event.length_accuracies();
      bool damaged = measured.accuracies_size() != measured.lengths_size();
      for (const v1::LengthAccuracies::Metric& metric : measured.metrics()) {
        damaged |= metric.values_size() != measured.lengths_size();
      }
      if (damaged) {
        return absl::DataLossError(absl::StrCat("an evaluation of ", trial, " is damaged"));
      }
      history.evaluations.push_back({event.step(), Seconds(event.time()), measured});
    }
    if (event.has_sequence_scores()) {
      history.sequence_scores[event.sequence_scores().length()] = event.sequence_scores();
    }
    if (event.has_noise_accuracies()) history.noise_accuracies = event.noise_accuracies();
    if (!event.has_training_points()) continue;
    const v1::TrainingPoints& points = event.training_points();
    const int count = points.steps_size();
    if (points.losses_size() != count || points.accuracies_size() != count ||
        points.gradient_norms_size() != count || points.lengths_size() != count) {
      return absl::DataLossError(absl::StrCat("the loss curve of ", trial, " is damaged"));
    }
    history.points.MergeFrom(points);
    history.times.insert(history.times.end(), static_cast<size_t>(count), Seconds(event.time()));
  }
  return history;
}

double MeanAccuracy(const v1::LengthAccuracies& accuracies, int32_t seen_up_to, bool seen) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < accuracies.lengths_size(); ++i) {
    if ((accuracies.lengths(i) <= seen_up_to) != seen) continue;
    sum += accuracies.accuracies(i);
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count;
}

}  // namespace lengthwise::client
