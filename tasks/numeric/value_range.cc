#include "tasks/numeric/value_range.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::tasks::numeric {

ValueRange RangeBetween(const ValueRange& widest, double u1, double u2) {
  return {widest.At(std::min(u1, u2)), widest.At(std::max(u1, u2))};
}

absl::Status CheckScale(double scale) {
  if (scale >= 1 && std::isfinite(scale)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("scales are finite and 1 or more, not ", scale));
}

ValueRange DrawRange(const ValueRange& training, double scale, random::Stream& stream) {
  const ValueRange widest{training.low * scale, training.high * scale};
  while (true) {
    const double u1 = stream.NextDouble();
    const double u2 = stream.NextDouble();
    const ValueRange range = RangeBetween(widest, u1, u2);
    if (scale <= 1 || !training.Contains(range)) return range;
  }
}

std::optional<double> InDomainProbabilityBound(int64_t n, double c) {
  if (n < 2 || !(c > 1) || !std::isfinite(c)) return std::nullopt;
  const auto m = static_cast<double>(n);
  // One bound of the sample's range lies in the training range (equation 8).
  const double one_inside = 3 * (1 - std::pow(c, 1 - m)) + 1;
  double bound = 0;
  if (n == 2) {
    const double none_inside = 4 * std::log((c + 1) * (c + 1) / (4 * c));
    bound = (one_inside + none_inside) / (2 * (c * c - 1));
  } else {
    // The training range lies between the bounds (equation 10).
    const double none_inside = 2 - 4 * std::pow(2 / (1 + c), m - 2) + 2 * std::pow(c, 2 - m);
    bound =
        one_inside / (2 * (c * c - 1) * (m - 1)) + none_inside / ((m - 1) * (m - 2) * (c * c - 1));
  }
  return std::min(bound, 1.0);
}

}  // namespace lengthwise::tasks::numeric
