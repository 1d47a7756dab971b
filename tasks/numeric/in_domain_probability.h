// How likely a test sample is one that training could have drawn.
#ifndef LENGTHWISE_TASKS_NUMERIC_IN_DOMAIN_PROBABILITY_H_
#define LENGTHWISE_TASKS_NUMERIC_IN_DOMAIN_PROBABILITY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace lengthwise::tasks::numeric {

enum class PairEquation : uint8_t {
  // With the factor 2^n = 4 that equation (10) has before its case for n = 2 and not in it.
  kCorrected,
  // Equation (12) as it is printed, which falls short: at c = 3 it is 0.206, while the probability
  // is 1/2 (1 - log 2) + 1/4 log(4/3) = 0.225.
  kPrinted,
};

// An upper bound for the probability that all `n` numbers of a test sample at scale `c` lie in the
// range of training, with the rejection of value_range.h: the first line of equation (11) of the
// positional-attention paper (appendix D) for n >= 3, equation (12) for n = 2. At most 1.
// INVALID_ARGUMENT unless n >= 2 and c is finite and above 1; with one number, or without another
// scale, the paper has no bound.
absl::StatusOr<double> InDomainProbabilityBound(int64_t n, double c,
                                                PairEquation for_pairs = PairEquation::kCorrected);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_IN_DOMAIN_PROBABILITY_H_
