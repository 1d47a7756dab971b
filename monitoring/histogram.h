// Distributions as they travel and are kept: v1::Histogram, whose buckets are not cumulative.
#ifndef LENGTHWISE_MONITORING_HISTOGRAM_H_
#define LENGTHWISE_MONITORING_HISTOGRAM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::monitoring {

// More are not accepted from elsewhere.
inline constexpr int kMostBuckets = 40;

// An empty one. The bounds are inclusive and ascend.
v1::Histogram EmptyHistogram(absl::Span<const double> upper_bounds);

// `histogram` was made by EmptyHistogram.
void Observe(double value, v1::Histogram& histogram);

// Values that were observed.
int64_t Count(const v1::Histogram& histogram);

// False for a message that is no histogram, or one with too many buckets; an empty message is none.
bool IsSound(const v1::Histogram& histogram);

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_HISTOGRAM_H_
