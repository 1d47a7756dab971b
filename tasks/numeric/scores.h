// Errors and accuracies of regression outputs, including both accuracies of the
// positional-attention paper (appendix "Accuracy measures"). Elements with `mask` 0 do not count;
// spans have equal length.
#ifndef LENGTHWISE_TASKS_NUMERIC_SCORES_H_
#define LENGTHWISE_TASKS_NUMERIC_SCORES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lengthwise::tasks::numeric {

// A sum over elements, so that batches add up: the mean is sum / count.
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

// |prediction - target| / max(|target|, 1.17e-6), as a fraction. The limit keeps the error finite
// for a target of 0, as in TorchMetrics, whose value it is, and scikit-learn.
ErrorSum AbsolutePercentageErrors(absl::Span<const double> predictions,
                                  absl::Span<const double> targets, absl::Span<const uint8_t> mask);

// Returns true if every prediction, rounded to the nearest multiple of `unit`, equals its target.
// Ties round to even.
bool AllRoundToTarget(absl::Span<const double> predictions, absl::Span<const double> targets,
                      absl::Span<const uint8_t> mask, double unit);

// Readings of "within an absolute precision of 0.05 and a relative precision of 5 %", for an error
// e and a target y.
enum class Closeness : uint8_t {
  kSum,     // |e| <= 0.05 + 0.05 |y|: torch.isclose, as in the authors' program
  kBoth,    // |e| <= 0.05 and |e| <= 0.05 |y|: the paper's words
  kEither,  // |e| <= 0.05 or |e| <= 0.05 |y|
};

struct Tolerance {
  double absolute = 0.05;
  double relative = 0.05;
};

bool IsClose(double prediction, double target, Closeness closeness, const Tolerance& tolerance);

// Returns true if every prediction is close to its target.
bool AllClose(absl::Span<const double> predictions, absl::Span<const double> targets,
              absl::Span<const uint8_t> mask, Closeness closeness, const Tolerance& tolerance);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_SCORES_H_
