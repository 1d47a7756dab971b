// Steps of optimizers for tests, with numbers computed on the host.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_TESTING_HOST_STEPS_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_TESTING_HOST_STEPS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "ATen/ops/tensor.h"
#include "absl/types/span.h"
#include "models/optimizers/optimizer.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Optimizer::Step with unscaled gradients.
inline void HostStep(const Optimizer& optimizer, ParameterArena& arena, int64_t first,
                     int64_t count, int64_t step, absl::Span<const double> learning_rates) {
  const at::Tensor numbers = at::tensor(optimizer.StepNumbers(step, learning_rates));
  optimizer.Step(arena, first, count, numbers.to(arena.parameters().device()), at::Tensor());
}

// Clips the arena's gradients. Returns the norms before clipping.
inline at::Tensor ClipGradients(ParameterArena& arena, int64_t first, int64_t count,
                                double clip_norm) {
  const Clipping clipping = MeasureGradients(arena, first, count, clip_norm);
  if (clipping.factors.defined()) {
    arena.gradients().narrow(0, first, count).mul_(clipping.factors.unsqueeze(1));
  }
  return clipping.norms;
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_TESTING_HOST_STEPS_H_
