// Down-sampling of loss curves, as QueryLossCurvesRequest.max_points documents it.
#ifndef LENGTHWISE_SERVER_API_LOSS_CURVE_H_
#define LENGTHWISE_SERVER_API_LOSS_CURVE_H_

#include <cstdint>

#include "proto/event.pb.h"

namespace lengthwise::server {

// Appends the points of `from` to `to`. Columns that are shorter than `steps` are filled with
// zeros, so that the columns of `to` keep equal lengths.
void AppendPoints(const v1::TrainingPoints& from, v1::TrainingPoints& to);

// Returns `points` when there are at most `max_points` (>= 2). Otherwise returns exactly
// `max_points` points: the first and the last as they are, and between them the other points in
// `max_points` - 2 buckets of consecutive points whose sizes differ by at most one. A bucket is one
// point: the means of its losses, accuracies and gradient norms, with the step and length of its
// last point. Not-a-number stays visible: a bucket that contains one has that mean.
v1::TrainingPoints DownSample(const v1::TrainingPoints& points, int64_t max_points);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_LOSS_CURVE_H_
