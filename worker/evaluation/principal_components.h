// Principal component analysis in two dimensions.
#ifndef LENGTHWISE_WORKER_EVALUATION_PRINCIPAL_COMPONENTS_H_
#define LENGTHWISE_WORKER_EVALUATION_PRINCIPAL_COMPONENTS_H_

#include <array>

#include "ATen/core/Tensor.h"

namespace lengthwise::worker::evaluation {

// The two orthogonal directions in which points vary most: eigenvectors of their covariance. Not
// whitened: coordinates keep the points' scale.
struct PrincipalComponents {
  at::Tensor mean;        // [d], double
  at::Tensor directions;  // [d, 2], double, the greater variance first
  // Share of the points' whole variance along each direction; 0 where there is no variance.
  std::array<double, 2> explained_variance = {};
};

// Fits to `points` [N, d] on the CPU, N >= 1, in double precision. An eigenvector's sign is
// arbitrary: here its loading of the largest magnitude (the first of equal ones) is positive, so
// that the same points give the same coordinates. Where d is 1 the second direction is 0.
PrincipalComponents FitPrincipalComponents(const at::Tensor& points);

// Coordinates [N, 2], double, of other points [N, d].
at::Tensor Coordinates(const PrincipalComponents& components, const at::Tensor& points);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_PRINCIPAL_COMPONENTS_H_
