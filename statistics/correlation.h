// How strongly two quantities go together.
#ifndef LENGTHWISE_STATISTICS_CORRELATION_H_
#define LENGTHWISE_STATISTICS_CORRELATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lengthwise::statistics {

struct Correlation {
  double coefficient = 0;  // -1 to 1
  double p_value = 0;      // two-sided, of Student's t with n - 2 degrees of freedom
};

// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> Ranks(absl::Span<const double> values);

// Both: INVALID_ARGUMENT where the numbers of values differ or there are fewer than three;
// FAILED_PRECONDITION where one quantity does not vary.
absl::StatusOr<Correlation> PearsonCorrelation(absl::Span<const double> first,
                                               absl::Span<const double> second);
// Of the ranks.
absl::StatusOr<Correlation> SpearmanCorrelation(absl::Span<const double> first,
                                                absl::Span<const double> second);

}  // namespace lengthwise::statistics

#endif  // LENGTHWISE_STATISTICS_CORRELATION_H_
