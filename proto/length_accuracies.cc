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

void SetMeans(int32_t seen_up_to, v1::LengthAccuracies& accuracies) {
  struct Side {
    double accuracy = 0;
    double loss = 0;
    int lengths = 0;
  };
  Side seen, unseen;
  const int lengths = std::min(accuracies.lengths_size(), accuracies.accuracies_size());
  for (int i = 0; i < lengths; ++i) {
    Side& side = accuracies.lengths(i) <= seen_up_to ? seen : unseen;
    side.accuracy += ClampAccuracy(accuracies.accuracies(i));
    if (i < accuracies.losses_size()) side.loss += accuracies.losses(i);
    ++side.lengths;
  }
  accuracies.clear_seen_accuracy();
  accuracies.clear_seen_loss();
  accuracies.clear_unseen_accuracy();
  accuracies.clear_unseen_loss();
  if (seen.lengths > 0) {
    accuracies.set_seen_accuracy(seen.accuracy / seen.lengths);
    accuracies.set_seen_loss(seen.loss / seen.lengths);
  }
  if (unseen.lengths > 0) {
    accuracies.set_unseen_accuracy(unseen.accuracy / unseen.lengths);
    accuracies.set_unseen_loss(unseen.loss / unseen.lengths);
  }
}

bool IsBetter(const SelectionScore& a, const SelectionScore& b) {
  return a.score != b.score ? a.score > b.score : a.loss < b.loss;
}

std::optional<SelectionScore> ScoreForSelection(absl::string_view select, bool by_loss,
                                                const v1::LengthAccuracies& accuracies) {
  SelectionScore found;
  if (select != "unseen" && accuracies.has_validation_accuracy()) {
    found = {accuracies.validation_accuracy(), accuracies.validation_loss()};
  } else if (select == "unseen" && accuracies.has_unseen_accuracy()) {
    found = {accuracies.unseen_accuracy(), accuracies.unseen_loss()};
  } else if (accuracies.has_seen_accuracy()) {
    found = {accuracies.seen_accuracy(), accuracies.seen_loss()};
  } else {
    return std::nullopt;
  }
  if (by_loss) found.score = -found.loss;
  return std::isnan(found.score) ? std::nullopt : std::optional(found);
}

}  // namespace lengthwise
