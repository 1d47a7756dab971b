// Errors and accuracies of regression outputs, including both accuracies of the
// positional-attention paper (appendix "Accuracy measures"). Elements with `mask` 0 do not count;
// spans have equal length.
#ifndef LENGTHWISE_TASKS_NUMERIC_SCORES_H_
#define LENGTHWISE_TASKS_NUMERIC_SCORES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lengthwise::tasks::numeric {

// The mean of (prediction - target)^2.
double MeanSquaredError(absl::Span<const double> predictions, absl::Span<const double> targets,
                        absl::Span<const uint8_t> mask);

// The mean of |prediction - target| / max(|target|, 1.17e-6), as a fraction. The limit keeps the
// error finite for a target of 0, as in TorchMetrics, whose value it is, and scikit-learn.
double MeanAbsolutePercentageError(absl::Span<const double> predictions,
                                   absl::Span<const double> targets,
                                   absl::Span<const uint8_t> mask);

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

bool IsClose(double prediction, double target, Closeness closeness);

// Returns true if every prediction is close to its target.
bool AllClose(absl::Span<const double> predictions, absl::Span<const double> targets,
              absl::Span<const uint8_t> mask, Closeness closeness);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_SCORES_H_
