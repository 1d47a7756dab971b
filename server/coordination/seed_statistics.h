// Mean, deviation and quantiles over trials that differ only in seeds.
#ifndef LENGTHWISE_SERVER_COORDINATION_SEED_STATISTICS_H_
#define LENGTHWISE_SERVER_COORDINATION_SEED_STATISTICS_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::server {

// NaN without values.
double Mean(absl::Span<const double> values);

// With n - 1 in the denominator, as in tables of few seeds. Computed in two passes, so that values
// that differ little keep their difference. NaN for fewer than two values.
double SampleStandardDeviation(absl::Span<const double> values);

// The quantile `q`, from 0 to 1, with linear interpolation between the two nearest values (NumPy's
// default). 0.5 is the median. NaN without values.
double Quantile(std::vector<double> values, double q);

// Takes one value per trial. Empty without values. The deviation is the sample's, 0 for one value.
v1::SummarizeExperimentResponse::Statistic SeedStatistic(absl::Span<const double> values);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SEED_STATISTICS_H_
