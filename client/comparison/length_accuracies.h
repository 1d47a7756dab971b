// Accuracies at single lengths as papers print them: a summary has their means alone.
#ifndef LENGTHWISE_CLIENT_COMPARISON_LENGTH_ACCURACIES_H_
#define LENGTHWISE_CLIENT_COMPARISON_LENGTH_ACCURACIES_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "client/comparison/aggregation.h"
#include "client/comparison/published_table.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// Of the succeeded trials that were evaluated at a length: by a summary's cell, its index, and the
// length.
using LengthAccuracyStatistics = std::map<std::pair<int, int32_t>, SeedStatistic>;

// At the lengths of the table's columns, from the final evaluations of the experiment's trials; of
// several of a trial the last one counts.
LengthAccuracyStatistics SumUpLengthAccuracies(const PublishedTable& table,
                                               const v1::SummarizeExperimentResponse& summary,
                                               const std::vector<v1::Trial>& trials,
                                               const v1::QueryLengthAccuraciesResponse& accuracies);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_LENGTH_ACCURACIES_H_
