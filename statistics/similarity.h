// How alike two vectors or distributions are: attention maps of two models.
#ifndef LENGTHWISE_STATISTICS_SIMILARITY_H_
#define LENGTHWISE_STATISTICS_SIMILARITY_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lengthwise::statistics {

// The cosine of the angle between two vectors, -1 to 1. INVALID_ARGUMENT where their lengths
// differ; FAILED_PRECONDITION where one is zero.
absl::StatusOr<double> CosineSimilarity(absl::Span<const double> first,
                                        absl::Span<const double> second);

// The Jensen-Shannon divergence of two distributions in nats, 0 to log 2: the mean divergence of
// each from their mean. (Not its root, which SciPy's jensenshannon returns.) Weights are
// normalized. INVALID_ARGUMENT where the lengths differ, a weight is negative or not finite, or a
// sum is 0.
absl::StatusOr<double> JensenShannonDivergence(absl::Span<const double> first,
                                               absl::Span<const double> second);

}  // namespace lengthwise::statistics

#endif  // LENGTHWISE_STATISTICS_SIMILARITY_H_
