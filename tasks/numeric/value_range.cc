#include "tasks/numeric/value_range.h"

#include <algorithm>

namespace lengthwise::tasks::numeric {

ValueRange RangeBetween(const ValueRange& widest, double u1, double u2) {
  return {widest.At(std::min(u1, u2)), widest.At(std::max(u1, u2))};
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

}  // namespace lengthwise::tasks::numeric
