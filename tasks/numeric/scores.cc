#include "tasks/numeric/scores.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lengthwise::tasks::numeric {
namespace {

constexpr double kSmallestTarget = 1.17e-6;
constexpr double kAbsoluteTolerance = 0.05, kRelativeTolerance = 0.05;

template <typename Error>
double Mean(absl::Span<const double> predictions, absl::Span<const double> targets,
            absl::Span<const uint8_t> mask, const Error& error) {
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) continue;
    sum += error(predictions[i], targets[i]);
    ++count;
  }
  return sum / static_cast<double>(count);
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

double MeanSquaredError(absl::Span<const double> predictions, absl::Span<const double> targets,
                        absl::Span<const uint8_t> mask) {
  return Mean(predictions, targets, mask, [](double prediction, double target) {
    return (prediction - target) * (prediction - target);
  });
}

double MeanAbsolutePercentageError(absl::Span<const double> predictions,
                                   absl::Span<const double> targets,
                                   absl::Span<const uint8_t> mask) {
  return Mean(predictions, targets, mask, [](double prediction, double target) {
    return std::abs(prediction - target) / std::max(std::abs(target), kSmallestTarget);
  });
}

bool AllRoundToTarget(absl::Span<const double> predictions, absl::Span<const double> targets,
                      absl::Span<const uint8_t> mask, double unit) {
  return All(predictions, targets, mask, [unit](double prediction, double target) {
    return std::nearbyint(prediction / unit) * unit == target;
  });
}

bool IsClose(double prediction, double target, Closeness closeness) {
  const double error = std::abs(prediction - target);
  const double relative = kRelativeTolerance * std::abs(target);
  switch (closeness) {
    case Closeness::kSum:
      return error <= kAbsoluteTolerance + relative;
    case Closeness::kBoth:
      return error <= kAbsoluteTolerance && error <= relative;
    case Closeness::kEither:
      return error <= kAbsoluteTolerance || error <= relative;
  }
  return false;
}

bool AllClose(absl::Span<const double> predictions, absl::Span<const double> targets,
              absl::Span<const uint8_t> mask, Closeness closeness) {
  return All(predictions, targets, mask, [&](double prediction, double target) {
    return IsClose(prediction, target, closeness);
  });
}

}  // namespace lengthwise::tasks::numeric
