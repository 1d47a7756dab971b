// Mean, spread and quantiles of trials that differ in nothing but seeds.
#ifndef LENGTHWISE_SERVER_COORDINATION_SEED_STATISTICS_H_
#define LENGTHWISE_SERVER_COORDINATION_SEED_STATISTICS_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::server {

// Not-a-number without values.
double Mean(absl::Span<const double> values);

// In two passes, so that values which differ little keep their difference; with n - 1 in the
// denominator, as tables of few seeds have it; not-a-number for fewer than two values.
double SampleStandardDeviation(absl::Span<const double> values);

// The quantile `q` of 0 to 1 with linear interpolation between the two nearest values (NumPy's
// default): 0.5 is the median. Not-a-number without values.
double Quantile(std::vector<double> values, double q);

// Of a value for each trial; empty without values. The deviation is the sample's, 0 of one value.
v1::SummarizeExperimentResponse::Statistic SeedStatistic(absl::Span<const double> values);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_SEED_STATISTICS_H_
