// The interval from which one sample's numbers are drawn.
#ifndef LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_
#define LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_

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

// Draws a sample's range: two uniform points of `training` stretched by `scale` about 0 (section 6
// of the positional-attention paper: gamma_l and gamma_u). If `scale` is above 1, redraws both
// points while both lie within `training`. A scale of 1 rejects nothing.
ValueRange DrawRange(const ValueRange& training, double scale, random::Stream& stream);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_
