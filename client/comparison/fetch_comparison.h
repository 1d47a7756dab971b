// From the server to a comparison.
#ifndef LENGTHWISE_CLIENT_COMPARISON_FETCH_COMPARISON_H_
#define LENGTHWISE_CLIENT_COMPARISON_FETCH_COMPARISON_H_

#include "absl/status/statusor.h"
#include "client/comparison/comparison_display.h"
#include "client/comparison/published_table.h"
#include "client/connection/connection.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// The experiment beside the table. `summary` is the experiment's, with its lengths where the table
// has losses; what else the table needs is asked for. Errors as of Compare.
absl::StatusOr<ComparisonDocument> FetchComparison(Connection& connection,
                                                   const v1::Experiment& experiment,
                                                   const v1::SummarizeExperimentResponse& summary,
                                                   PublishedTable table);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_FETCH_COMPARISON_H_
