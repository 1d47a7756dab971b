#include "statistics/student_t.h"

#include <cmath>

namespace lengthwise::statistics {
namespace {

// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by Lentz's
// method; converges fast for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kPrecision = 1e-16;
  constexpr int kSteps = 1000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    const double factor = d * c;
    fraction *= factor;
    if (std::abs(factor - 1) < kPrecision) break;
  }
  return fraction;
}

// The regularized incomplete beta function I_x(a, b). `y` is 1 - x, which the caller knows better
// than a difference would where x is near 1.
double RegularizedBeta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log(y));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, y) / b;
}

}  // namespace

double TwoSidedPValue(double t, double degrees_of_freedom) {
  if (std::isnan(t)) return t;
  if (std::isinf(t)) return 0;
  const double square = t * t;
  if (std::isinf(square)) return 0;
  const double sum = degrees_of_freedom + square;
  return RegularizedBeta(degrees_of_freedom / 2, 0.5, degrees_of_freedom / sum, square / sum);
}

}  // namespace lengthwise::statistics
