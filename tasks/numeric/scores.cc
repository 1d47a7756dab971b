#include "tasks/numeric/scores.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lengthwise::tasks::numeric {
namespace {

constexpr double kSmallestTarget = 1.17e-6;

template <typename Error>
ErrorSum Sum(absl::Span<const double> predictions, absl::Span<const double> targets,
             absl::Span<const uint8_t> mask, const Error& error) {
  ErrorSum errors;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) continue;
    errors.sum += error(predictions[i], targets[i]);
    ++errors.count;
  }
  return errors;
}

template <typename IsRight>
bool All(absl::Span<const double> predictions, absl::Span<const double> targets,
         absl::Span<const uint8_t> mask, const IsRight& is_right) {
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0 && !is_right(predictions[i], targets[i])) return false;
  }
  return true;
}

}  // namespace

ErrorSum SquaredErrors(absl::Span<const double> predictions, absl::Span<const double> targets,
                       absl::Span<const uint8_t> mask) {
  return Sum(predictions, targets, mask, [](double prediction, double target) {
    return (prediction - target) * (prediction - target);
  });
}

ErrorSum AbsolutePercentageErrors(absl::Span<const double> predictions,
                                  absl::Span<const double> targets,
                                  absl::Span<const uint8_t> mask) {
  return Sum(predictions, targets, mask, [](double prediction, double target) {
    return std::abs(prediction - target) / std::max(std::abs(target), kSmallestTarget);
  });
}

bool AllRoundToTarget(absl::Span<const double> predictions, absl::Span<const double> targets,
                      absl::Span<const uint8_t> mask, double unit) {
  return All(predictions, targets, mask, [unit](double prediction, double target) {
    return std::nearbyint(prediction / unit) * unit == target;
  });
}

bool IsClose(double prediction, double target, Closeness closeness, const Tolerance& tolerance) {
  const double error = std::abs(prediction - target);
  const double relative = tolerance.relative * std::abs(target);
  switch (closeness) {
    case Closeness::kSum:
      return error <= tolerance.absolute + relative;
    case Closeness::kBoth:
      return error <= tolerance.absolute && error <= relative;
    case Closeness::kEither:
      return error <= tolerance.absolute || error <= relative;
  }
  return false;
}

bool AllClose(absl::Span<const double> predictions, absl::Span<const double> targets,
              absl::Span<const uint8_t> mask, Closeness closeness, const Tolerance& tolerance) {
  return All(predictions, targets, mask, [&](double prediction, double target) {
    return IsClose(prediction, target, closeness, tolerance);
  });
}

}  // namespace lengthwise::tasks::numeric
