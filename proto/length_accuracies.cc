#include "proto/length_accuracies.h"

#include <algorithm>

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

}  // namespace lengthwise
