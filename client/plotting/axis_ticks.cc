#include "client/plotting/axis_ticks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lengthwise::client {
namespace {

// Rounding errors do not decide whether a tick at the end of a range is in it.
constexpr double kSlack = 1e-9;

// At least `least` apart.
std::vector<double> LinearTicks(double low, double high, int most, double least) {
  const double span = high - low;
  double unit = std::pow(10, std::floor(std::log10(span / most)));
  double step = unit;
  // 10 times the unit is the next one's 1.
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * unit;
    if (span / step + 1 <= most + kSlack) break;
  }
  step = std::max(step, least);
  std::vector<double> ticks;
  const auto first = static_cast<int64_t>(std::ceil(low / step - kSlack));
  const auto last = static_cast<int64_t>(std::floor(high / step + kSlack));
  for (int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

// base^k times each factor within the range.
std::vector<double> Powers(double low, double high, double base,
                           const std::vector<double>& factors) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log(low) / std::log(base))) - 1;
  const int last = static_cast<int>(std::ceil(std::log(high) / std::log(base))) + 1;
  for (int exponent = first; exponent <= last; ++exponent) {
    for (const double factor : factors) {
      const double value = factor * std::pow(base, exponent);
      if (value >= low * (1 - kSlack) && value <= high * (1 + kSlack)) ticks.push_back(value);
    }
  }
  return ticks;
}

// Every second, third, ... where there are too many.
std::vector<double> Thin(const std::vector<double>& ticks, int most) {
  const size_t stride = (ticks.size() + most - 1) / std::max(most, 1);
  std::vector<double> kept;
  for (size_t i = 0; i < ticks.size(); i += std::max<size_t>(stride, 1)) kept.push_back(ticks[i]);
  return kept;
}

}  // namespace

std::string TickLabel(double value, double largest) {
  const double magnitude = std::abs(value);
  if (magnitude >= 999'999.5) return absl::StrCat(absl::StrFormat("%.6g", value / 1e6), "M");
  if (magnitude >= 999.5 && largest >= 9'999.5) {
    return absl::StrCat(absl::StrFormat("%.6g", value / 1e3), "k");
  }
  return absl::StrFormat("%.4g", value);
}

std::vector<Tick> AxisTicks(const Axis& axis, double low, double high, int most) {
  if (axis.ticks == Axis::Ticks::kNone) return {};
  most = std::max(most, 2);
  const double least = axis.ticks == Axis::Ticks::kCounts ? 1 : 0;
  std::vector<double> values;
  switch (axis.scale) {
    case Axis::Scale::kLinear:
      values = LinearTicks(low, high, most, least);
      break;
    case Axis::Scale::kLog2:
      values = Thin(Powers(low, high, 2, {1}), most);
      break;
    case Axis::Scale::kLog10:
      values = Powers(low, high, 10, {1, 2, 5});
      if (static_cast<int>(values.size()) > most) values = Thin(Powers(low, high, 10, {1}), most);
      if (values.size() < 2) values = LinearTicks(low, high, most, least);
      break;
  }
  std::vector<Tick> ticks;
  for (const double value : values) {
    if (axis.scale != Axis::Scale::kLinear && value <= 0) continue;
    if (axis.ticks == Axis::Ticks::kPercent) {
      ticks.push_back({value, absl::StrFormat("%.4g %%", value * 100)});
    } else if (axis.scale == Axis::Scale::kLog2) {
      ticks.push_back({value, absl::StrFormat("%.0f", value)});  // 16384, not 16.38k
    } else {
      ticks.push_back({value, TickLabel(value, values.back())});
    }
  }
  return ticks;
}

}  // namespace lengthwise::client
