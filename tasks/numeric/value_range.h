// The interval from which one sample's numbers are drawn, and the probability that training could
// have drawn the numbers of a test sample.
#ifndef LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_
#define LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "random/stream.h"

namespace lengthwise::tasks::numeric {

struct ValueRange {
  double low = 0;
  double high = 0;

  // Interpolates: `u` in [0, 1) maps to [low, high).
  double At(double u) const { return low + (high - low) * u; }
  bool Contains(const ValueRange& other) const { return other.low >= low && other.high <= high; }
};

// The range between two points of `widest`, given as fractions in any order.
ValueRange RangeBetween(const ValueRange& widest, double u1, double u2);

// INVALID_ARGUMENT unless `scale` is finite and at least 1.
absl::Status CheckScale(double scale);

// Draws a sample's range: two uniform points of `training` stretched by `scale` about 0 (section 6
// of the positional-attention paper: gamma_l and gamma_u). If `scale` is above 1, redraws both
// points while both lie within `training`. A scale of 1 rejects nothing.
ValueRange DrawRange(const ValueRange& training, double scale, random::Stream& stream);

// Upper bound, at most 1, for the probability that all `n` numbers of a test sample at scale `c`
// lie in the training range, given the rejection of DrawRange. For n >= 3: the first line of
// equation (11) of the positional-attention paper (appendix D). For n = 2: equation (12) with the
// factor 2^n = 4 that equation (10) has, but not in its case for n = 2. As printed it is too low:
// 0.206 at c = 3, where the probability is 1/2 (1 - log 2) + 1/4 log(4/3) = 0.225. Nullopt unless
// n >= 2 and c is finite and above 1; the paper has no bound for other values.
std::optional<double> InDomainProbabilityBound(int64_t n, double c);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_
