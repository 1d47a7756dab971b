// How far two sets of vectors are apart when one may be turned onto the other.
#ifndef LENGTHWISE_STATISTICS_PROCRUSTES_H_
#define LENGTHWISE_STATISTICS_PROCRUSTES_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lengthwise::statistics {

// The smallest Frobenius norm of A R - B over the orthogonal matrices R [columns, columns]:
// learned positional encodings A against given ones B, a vector for each row. `a` and `b` are
// [rows, columns], row-major. Its square is |A|^2 + |B|^2 - 2 (the sum of the singular values of
// transposed A times B). INVALID_ARGUMENT where a size is not rows * columns or a number is not
// finite.
absl::StatusOr<double> ProcrustesDistance(absl::Span<const double> a, absl::Span<const double> b,
                                          size_t rows, size_t columns);

}  // namespace lengthwise::statistics

#endif  // LENGTHWISE_STATISTICS_PROCRUSTES_H_
