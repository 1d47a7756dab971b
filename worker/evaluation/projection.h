// Activations in two dimensions, by principal component analysis (Ruoss et al. 2023, Figure 5).
#ifndef LENGTHWISE_WORKER_EVALUATION_PROJECTION_H_
#define LENGTHWISE_WORKER_EVALUATION_PROJECTION_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/parameters/arena.h"
#include "proto/event.pb.h"
#include "worker/evaluation/evaluator.h"

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

// For each of `lengths`, in their order, the activations of the set's first member at the input
// tokens of `sequences` evaluation sequences. At every depth they are projected onto the principal
// components of those of `fitted_length`, one point a token: 30 x 40 points in the paper. All
// numbers are at least 1.
std::vector<v1::Projection> ProjectActivations(const Evaluator& evaluator,
                                               const models::ParameterSet& parameters,
                                               int64_t fitted_length, int64_t sequences,
                                               absl::Span<const int32_t> lengths);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_PROJECTION_H_
