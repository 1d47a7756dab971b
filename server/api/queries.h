// Answers of ExperimentService's queries, computed from the event log. They read as much as the
// request asks for, so they must not run on gRPC's threads.
#ifndef LENGTHWISE_SERVER_API_QUERIES_H_
#define LENGTHWISE_SERVER_API_QUERIES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "rpc/transport.h"
#include "server/coordination/event_log.h"
#include "server/coordination/reads.h"

namespace lengthwise::server {

// An answer of more than `max_answer_bytes` is RESOURCE_EXHAUSTED. The error has both numbers, and
// says how to ask for less.

absl::StatusOr<v1::QueryLossCurvesResponse> LossCurves(
    EventLog& log, const v1::QueryLossCurvesRequest& request,
    int64_t max_answer_bytes = rpc::kMaxAnswerBytes);

absl::StatusOr<v1::QueryLengthAccuraciesResponse> LengthAccuracies(
    EventLog& log, const v1::QueryLengthAccuraciesRequest& request,
    int64_t max_answer_bytes = rpc::kMaxAnswerBytes);

absl::StatusOr<v1::SummarizeExperimentResponse> Summary(
    Reads& reads, const v1::SummarizeExperimentRequest& request,
    int64_t max_answer_bytes = rpc::kMaxAnswerBytes);

// Positions of the events that the request asks for.
absl::StatusOr<std::vector<int64_t>> AttentionMaps(EventLog& log,
                                                   const v1::QueryAttentionMapsRequest& request);
absl::StatusOr<std::vector<int64_t>> Projections(EventLog& log,
                                                 const v1::QueryProjectionsRequest& request);
absl::StatusOr<std::vector<int64_t>> Analyses(EventLog& log,
                                              const v1::QueryAnalysesRequest& request);

// The event of an experiment or a trial at a position. ABORTED if it was replaced.
absl::StatusOr<v1::Event> EventAt(EventLog& log, absl::string_view experiment_or_trial,
                                  int64_t position);

// Appends the points of `from` to `to`. Columns shorter than `steps` are filled with zeros, so that
// the columns of `to` keep equal lengths.
void AppendPoints(const v1::TrainingPoints& from, v1::TrainingPoints& to);

// Down-samples a loss curve, as documented for QueryLossCurvesRequest.max_points. Returns `points`
// unchanged if there are at most `max_points` (>= 2). Otherwise returns exactly `max_points`
// points: the first and the last unchanged, and the others averaged in `max_points` - 2 buckets of
// consecutive points whose sizes differ by at most one. A bucket has the means of its losses,
// accuracies and gradient norms, and the step and length of its last point. A bucket that contains
// a NaN has a NaN mean, so divergence stays visible.
v1::TrainingPoints DownSample(const v1::TrainingPoints& points, int64_t max_points);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_QUERIES_H_
