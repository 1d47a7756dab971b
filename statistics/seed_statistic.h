// What summaries say of trials that differ in nothing but seeds.
#ifndef LENGTHWISE_STATISTICS_SEED_STATISTIC_H_
#define LENGTHWISE_STATISTICS_SEED_STATISTIC_H_

#include "absl/types/span.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::statistics {

// Of a value for each trial; empty without values. The deviation is the sample's, 0 of one value.
v1::SummarizeExperimentResponse::Statistic SeedStatistic(absl::Span<const double> values);

}  // namespace lengthwise::statistics

#endif  // LENGTHWISE_STATISTICS_SEED_STATISTIC_H_
