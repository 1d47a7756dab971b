// What a set of numbers is described by.
#ifndef LENGTHWISE_STATISTICS_SUMMARY_H_
#define LENGTHWISE_STATISTICS_SUMMARY_H_

#include <vector>

#include "absl/types/span.h"

namespace lengthwise::statistics {

// Not-a-number without values.
double Mean(absl::Span<const double> values);

// In two passes, so that values which differ little keep their difference; with n - 1 in the
// denominator, as tables of few seeds have it; not-a-number for fewer than two
// values.
double SampleStandardDeviation(absl::Span<const double> values);

// The quantile `q` of 0 to 1 with linear interpolation between the two nearest values (NumPy's
// default): 0.5 is the median. Not-a-number without values.
double Quantile(std::vector<double> values, double q);

}  // namespace lengthwise::statistics

#endif  // LENGTHWISE_STATISTICS_SUMMARY_H_
