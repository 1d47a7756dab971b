// How right an output of a regression task is: errors, and the two accuracies of the
// positional-attention paper (appendix "Accuracy measures"). A sample's places where `mask` is 0 do
// not count; spans are of one length.
#ifndef LENGTHWISE_TASKS_NUMERIC_SCORES_H_
#define LENGTHWISE_TASKS_NUMERIC_SCORES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lengthwise::tasks::numeric {

// Sums over places, so that batches can be added up: the mean is sum / count.
struct ErrorSum {
  double sum = 0;
  int64_t count = 0;

  double Mean() const { return sum / static_cast<double>(count); }
  void Add(const ErrorSum& other) {
    sum += other.sum;
    count += other.count;
  }
};

// (prediction - target)^2.
ErrorSum SquaredErrors(absl::Span<const double> predictions, absl::Span<const double> targets,
                       absl::Span<const uint8_t> mask);

// |prediction - target| / max(|target|, 1.17e-6), a fraction and not a percentage. The limit keeps
// a target of 0 finite; it is TorchMetrics' and scikit-learn's way, with the former's value.
ErrorSum AbsolutePercentageErrors(absl::Span<const double> predictions,
                                  absl::Span<const double> targets, absl::Span<const uint8_t> mask);

// Whether every prediction, rounded to the nearest multiple of `unit` (the even one where two are
// as near), is its target.
bool AllRoundToTarget(absl::Span<const double> predictions, absl::Span<const double> targets,
                      absl::Span<const uint8_t> mask, double unit);

// What "within an absolute precision of 0.05 and a relative precision of 5 %" means for an error e
// of a target y.
enum class Closeness : uint8_t {
  kSum,     // |e| <= 0.05 + 0.05 |y|: torch.isclose, which the authors' program calls
  kBoth,    // |e| <= 0.05 and |e| <= 0.05 |y|: the paper's words
  kEither,  // |e| <= 0.05 or |e| <= 0.05 |y|
};

struct Tolerance {
  double absolute = 0.05;
  double relative = 0.05;
};

bool IsClose(double prediction, double target, Closeness closeness, const Tolerance& tolerance);

// Whether every prediction is close to its target.
bool AllClose(absl::Span<const double> predictions, absl::Span<const double> targets,
              absl::Span<const uint8_t> mask, Closeness closeness, const Tolerance& tolerance);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_SCORES_H_
