// The measures that evaluations have beside accuracy and loss, by name (LengthAccuracies.metrics).
#ifndef LENGTHWISE_CLIENT_RENDERING_METRICS_H_
#define LENGTHWISE_CLIENT_RENDERING_METRICS_H_

#include <set>
#include <string>

#include "client/rendering/records.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// Those that any of the evaluations has.
std::set<std::string> MetricNames(const v1::QueryLengthAccuraciesResponse& evaluations);

// At the index-th of its lengths; absent where the evaluation does not have it.
Value MetricValue(const v1::LengthAccuracies& measured, const std::string& name, int index);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_RENDERING_METRICS_H_
