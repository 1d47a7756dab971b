#include "proto/length_accuracies.h"

#include <algorithm>
#include <cmath>

namespace lengthwise {

std::string LengthAccuraciesProblem(const v1::LengthAccuracies& accuracies) {
  const int count = accuracies.lengths_size();
  bool equal = accuracies.accuracies_size() == count && accuracies.losses_size() == count;
  if (accuracies.sequence_counts_size() > 0) equal &= accuracies.sequence_counts_size() == count;
  for (const v1::LengthAccuracies::Metric& metric : accuracies.metrics()) {
    if (metric.name().empty()) return "length_accuracies.metrics has a metric without a name";
    equal &= metric.values_size() == count;
  }
  return equal ? "" : "the columns of length_accuracies differ in length";
}

int32_t SequencesAt(const v1::LengthAccuracies& accuracies, int i) {
  return i < accuracies.sequence_counts_size() ? accuracies.sequence_counts(i)
                                               : accuracies.sequences();
}

double ClampAccuracy(double accuracy) {
  // NaN fails the comparison and becomes 0.
  return accuracy > 0 ? std::min(accuracy, 1.0) : 0;
}

void SetMeanAccuracies(int32_t seen_up_to, v1::LengthAccuracies& accuracies) {
  double seen = 0;
  double unseen = 0;
  int seen_lengths = 0;
  const int lengths = std::min(accuracies.lengths_size(), accuracies.accuracies_size());
  for (int i = 0; i < lengths; ++i) {
    const bool is_seen = accuracies.lengths(i) <= seen_up_to;
    seen_lengths += is_seen ? 1 : 0;
    (is_seen ? seen : unseen) += ClampAccuracy(accuracies.accuracies(i));
  }
  accuracies.clear_seen_accuracy();
  accuracies.clear_unseen_accuracy();
  if (seen_lengths > 0) accuracies.set_seen_accuracy(seen / seen_lengths);
  if (lengths > seen_lengths) accuracies.set_unseen_accuracy(unseen / (lengths - seen_lengths));
}

bool IsBetter(const SelectionScore& a, const SelectionScore& b) {
  return a.score != b.score ? a.score > b.score : a.loss < b.loss;
}

std::optional<SelectionScore> ScoreForSelection(absl::string_view select, int32_t seen_up_to,
                                                bool by_loss,
                                                const v1::LengthAccuracies& accuracies) {
  double accuracy = accuracies.validation_accuracy();
  double loss = accuracies.validation_loss();
  if (select == "unseen" || !accuracies.has_validation_accuracy()) {
    const int size = std::min(accuracies.lengths_size(), accuracies.accuracies_size());
    const auto is_unseen = [&](int32_t length) { return length > seen_up_to; };
    const bool takes_unseen = select == "unseen";
    const bool takes_all = takes_unseen && std::none_of(accuracies.lengths().begin(),
                                                        accuracies.lengths().end(), is_unseen);
    int count = 0;
    accuracy = loss = 0;
    for (int i = 0; i < size; ++i) {
      if (!takes_all && is_unseen(accuracies.lengths(i)) != takes_unseen) continue;
      ++count;
      accuracy += ClampAccuracy(accuracies.accuracies(i));
      // Old histories of some releases have no losses.
      if (i < accuracies.losses_size()) loss += accuracies.losses(i);
    }
    if (count == 0) return std::nullopt;
    accuracy /= count;
    loss /= count;
  }
  const SelectionScore score = {by_loss ? -loss : accuracy, loss};
  return std::isnan(score.score) ? std::nullopt : std::optional(score);
}

}  // namespace lengthwise
