#include "statistics/correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "statistics/student_t.h"
#include "statistics/summary.h"

namespace lengthwise::statistics {

std::vector<double> Ranks(absl::Span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [values](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    // The mean of first + 1, ..., end.
    const double rank = static_cast<double>(first + 1 + end) / 2;
    for (; first < end; ++first) ranks[order[first]] = rank;
  }
  return ranks;
}

absl::StatusOr<Correlation> PearsonCorrelation(absl::Span<const double> first,
                                               absl::Span<const double> second) {
  if (first.size() != second.size() || first.size() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("a correlation needs three pairs or more; there are ", first.size(), " and ",
                     second.size(), " values"));
  }
  const double first_mean = Mean(first);
  const double second_mean = Mean(second);
  double products = 0, first_squares = 0, second_squares = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const double x = first[i] - first_mean;
    const double y = second[i] - second_mean;
    products += x * y;
    first_squares += x * x;
    second_squares += y * y;
  }
  if (first_squares == 0 || second_squares == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the ", first_squares == 0 ? "first" : "second", " of the two quantities does not vary"));
  }
  const double coefficient =
      std::clamp(products / std::sqrt(first_squares) / std::sqrt(second_squares), -1.0, 1.0);
  const auto degrees_of_freedom = static_cast<double>(first.size()) - 2;
  const double t =
      coefficient * std::sqrt(degrees_of_freedom / ((1 - coefficient) * (1 + coefficient)));
  return Correlation{coefficient, TwoSidedPValue(t, degrees_of_freedom)};
}

absl::StatusOr<Correlation> SpearmanCorrelation(absl::Span<const double> first,
                                                absl::Span<const double> second) {
  return PearsonCorrelation(Ranks(first), Ranks(second));
}

}  // namespace lengthwise::statistics
