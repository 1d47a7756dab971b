// From the results of trials to the one number that a paper prints for them.
#ifndef LENGTHWISE_CLIENT_COMPARISON_AGGREGATION_H_
#define LENGTHWISE_CLIENT_COMPARISON_AGGREGATION_H_

#include <optional>
#include <vector>

#include "client/comparison/published_table.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// What the server sums up of trials that differ only in seeds; of losses the median stands for the
// mean.
using SeedStatistic = v1::SummarizeExperimentResponse::Statistic;

struct Measurement {
  double value = 0;
  // Sample standard deviation (n - 1 in the denominator); absent for a maximum, a median and for
  // fewer than two trials.
  std::optional<double> deviation;
  // Trials that the value was taken from: those of the best configuration for kMeanAtBestRate, all
  // of them otherwise.
  int trials = 0;
};

// `configurations` are those of one cell of a table: each a network, an encoding and a learning
// rate. Absent where no trial has a value. Of configurations with the same mean, the first one
// wins.
std::optional<Measurement> Aggregate(const std::vector<SeedStatistic>& configurations,
                                     Statistic statistic);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_AGGREGATION_H_
