// Projects activations onto two dimensions by principal component analysis (Ruoss et al. 2023,
// Figure 5).
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

// Fits `points` [N, d] on the CPU, N >= 1, in double precision. An eigenvector's sign is arbitrary;
// this one makes the loading of largest magnitude (the first if tied) positive, so that the same
// points always give the same coordinates. If d is 1, the second direction is 0.
PrincipalComponents FitPrincipalComponents(const at::Tensor& points);

// Returns the coordinates [N, 2], double, of points [N, d].
at::Tensor Coordinates(const PrincipalComponents& components, const at::Tensor& points);

// Projects, for each of `lengths` in order, the activations of the set's first member at the input
// tokens of `sequences` evaluation sequences, one point per token. At every depth the principal
// components are those of `fitted_length`. The paper has 30 x 40 points. All arguments are at least
// 1.
std::vector<v1::Projection> ProjectActivations(const Evaluator& evaluator,
                                               const models::ParameterSet& parameters,
                                               int64_t fitted_length, int64_t sequences,
                                               absl::Span<const int32_t> lengths);

}  // namespace lengthwise::worker::evaluation

#endif  // LENGTHWISE_WORKER_EVALUATION_PROJECTION_H_
