#include "worker/training/mean_accuracy.h"

namespace lengthwise::worker::training {
namespace {

double Mean(const v1::LengthAccuracies& accuracies, int32_t seen_up_to, bool seen) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < accuracies.lengths_size(); ++i) {
    if ((accuracies.lengths(i) <= seen_up_to) != seen) continue;
    sum += accuracies.accuracies(i);
    ++count;
  }
  return count == 0 ? -1 : sum / count;
}

}  // namespace

double SeenAccuracy(const v1::LengthAccuracies& accuracies, int32_t seen_up_to) {
  return Mean(accuracies, seen_up_to, true);
}

double UnseenAccuracy(const v1::LengthAccuracies& accuracies, int32_t seen_up_to) {
  return Mean(accuracies, seen_up_to, false);
}

}  // namespace lengthwise::worker::training
