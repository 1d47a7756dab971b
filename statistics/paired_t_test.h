// Whether paired values differ in the mean.
#ifndef LENGTHWISE_STATISTICS_PAIRED_T_TEST_H_
#define LENGTHWISE_STATISTICS_PAIRED_T_TEST_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lengthwise::statistics {

struct PairedTTestResult {
  double t = 0;  // positive where the first values are larger
  double degrees_of_freedom = 0;
  double p_value = 0;  // two-sided
};

// Student's t test for the pairs (first[i], second[i]): two models' results with the same seeds.
// INVALID_ARGUMENT where the numbers of values differ or there are fewer than two pairs;
// FAILED_PRECONDITION where all differences are the same, for which there is no t.
absl::StatusOr<PairedTTestResult> PairedTTest(absl::Span<const double> first,
                                              absl::Span<const double> second);

}  // namespace lengthwise::statistics

#endif  // LENGTHWISE_STATISTICS_PAIRED_T_TEST_H_
