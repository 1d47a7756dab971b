// Measured values before they are exported: distributions and workers' samples. Without the
// Prometheus library, so that the server's core does not depend on it.
//
// A v1::Histogram is the form in which distributions are sent and kept. Its buckets are not
// cumulative.
#ifndef LENGTHWISE_MONITORING_SAMPLES_H_
#define LENGTHWISE_MONITORING_SAMPLES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::monitoring {

// Maximum number of buckets that IsSound accepts; bounds what a worker can make the server export.
inline constexpr int kMostBuckets = 40;

// Returns an empty histogram. `upper_bounds` are inclusive and ascending.
v1::Histogram EmptyHistogram(absl::Span<const double> upper_bounds);

// Counts `value`. `histogram` must come from EmptyHistogram.
void Observe(double value, v1::Histogram& histogram);

// Returns the number of observed values.
int64_t Count(const v1::Histogram& histogram);

// Returns false for an inconsistent message, an empty one, or one with too many buckets.
bool IsSound(const v1::Histogram& histogram);

// One worker's identity and measurements at a scrape.
struct WorkerSample {
  std::string worker_id;
  v1::Provenance provenance;
  int32_t max_pack_size = 0;
  v1::WorkerMeasurements measurements;
  // Relative to the server's clock, which measures it.
  std::optional<double> clock_ahead_seconds;
};

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_SAMPLES_H_
