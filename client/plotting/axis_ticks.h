// Where an axis has its ticks and what is written at them.
#ifndef LENGTHWISE_CLIENT_PLOTTING_AXIS_TICKS_H_
#define LENGTHWISE_CLIENT_PLOTTING_AXIS_TICKS_H_

#include <string>
#include <vector>

#include "client/plotting/figure.h"

namespace lengthwise::client {

struct Tick {
  double at = 0;
  std::string label;
};

// At round values (1, 2 or 5 times a power of ten; powers of two on such an axis) within the range
// [low, high], as many as there is room for and at most `most`, at least 2. None for Ticks::kNone.
// `low` < `high`; both > 0 on logarithmic axes.
std::vector<Tick> AxisTicks(const Axis& axis, double low, double high, int most);

// "0", "500", "2M", "0.02", "1e-05"; on an axis whose largest tick has five digits or more also
// "5k".
std::string TickLabel(double value, double largest);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_PLOTTING_AXIS_TICKS_H_
