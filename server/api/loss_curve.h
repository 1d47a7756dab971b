// Down-sampling of loss curves, as documented for QueryLossCurvesRequest.max_points.
#ifndef LENGTHWISE_SERVER_API_LOSS_CURVE_H_
#define LENGTHWISE_SERVER_API_LOSS_CURVE_H_

#include <cstdint>

#include "proto/event.pb.h"

namespace lengthwise::server {

// Appends the points of `from` to `to`. Columns shorter than `steps` are filled with zeros, so that
// the columns of `to` keep equal lengths.
void AppendPoints(const v1::TrainingPoints& from, v1::TrainingPoints& to);

// Returns `points` unchanged if there are at most `max_points` (>= 2). Otherwise returns exactly
// `max_points` points: the first and the last unchanged, and the others averaged in `max_points` -
// 2 buckets of consecutive points whose sizes differ by at most one. A bucket has the means of its
// losses, accuracies and gradient norms, and the step and length of its last point. A bucket that
// contains a NaN has a NaN mean, so divergence stays visible.
v1::TrainingPoints DownSample(const v1::TrainingPoints& points, int64_t max_points);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_LOSS_CURVE_H_
