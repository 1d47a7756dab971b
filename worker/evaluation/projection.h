// Activations in two dimensions (Ruoss et al. 2023, Figure 5).
#ifndef LENGTHWISE_WORKER_EVALUATION_PROJECTION_H_
#define LENGTHWISE_WORKER_EVALUATION_PROJECTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/parameters/arena.h"
#include "proto/event.pb.h"
#include "worker/evaluation/evaluator.h"

namespace lengthwise::worker::evaluation {

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
