// Bounds the probability that training could have drawn a given test sample.
#ifndef LENGTHWISE_TASKS_NUMERIC_IN_DOMAIN_PROBABILITY_H_
#define LENGTHWISE_TASKS_NUMERIC_IN_DOMAIN_PROBABILITY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace lengthwise::tasks::numeric {

enum class PairEquation : uint8_t {
  // Equation (12) with the factor 2^n = 4 that equation (10) has, but not in its case for n = 2.
  kCorrected,
  // Equation (12) as printed. It is too low: 0.206 at c = 3, where the probability is 1/2 (1 - log
  // 2) + 1/4 log(4/3) = 0.225.
  kPrinted,
};

// Upper bound, at most 1, for the probability that all `n` numbers of a test sample at scale `c`
// lie in the training range, given the rejection of value_range.h. For n >= 3: the first line of
// equation (11) of the positional-attention paper (appendix D). For n = 2: equation (12).
// INVALID_ARGUMENT unless n >= 2 and c is finite and above 1; the paper has no bound for other
// values.
absl::StatusOr<double> InDomainProbabilityBound(int64_t n, double c,
                                                PairEquation for_pairs = PairEquation::kCorrected);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_IN_DOMAIN_PROBABILITY_H_
