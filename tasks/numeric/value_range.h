// The interval that one sample's numbers come from.
#ifndef LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_
#define LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_

#include "random/stream.h"

namespace lengthwise::tasks::numeric {

struct ValueRange {
  double low = 0;
  double high = 0;

  // The place `u` of [0, 1) in the range.
  double At(double u) const { return low + (high - low) * u; }
  bool Contains(const ValueRange& other) const { return other.low >= low && other.high <= high; }
};

// The smaller and the larger of two places of `widest`.
ValueRange RangeBetween(const ValueRange& widest, double u1, double u2);

// Draws the range of one sample: two uniform places of `training` stretched by `scale` about 0
// (section 6 of the positional-attention paper: gamma_l and gamma_u). Where the scale is above 1 a
// pair within `training` is drawn again, both of it; a scale of 1 rejects nothing.
ValueRange DrawRange(const ValueRange& training, double scale, random::Stream& stream);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_VALUE_RANGE_H_
