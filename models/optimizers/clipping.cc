#include "ATen/ops/linalg_vector_norm.h"
#include "ATen/ops/ones_like.h"
#include "ATen/ops/where.h"
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {

Clipping MeasureGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm) {
  Clipping clipping;
  clipping.norms =
      at::linalg_vector_norm(arena.gradients().narrow(0, first, count), 2, at::IntArrayRef{1});
  if (clip_norm > 0) {
    const at::Tensor& norms = clipping.norms;
    // A norm that is not a number is not below the limit: such gradients become NaN and show in the
    // loss.
    clipping.factors =
        at::where(norms.lt(clip_norm), at::ones_like(norms), norms.reciprocal().mul(clip_norm));
  }
  return clipping;
}

at::Tensor ClipGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm) {
  const Clipping clipping = MeasureGradients(arena, first, count, clip_norm);
  if (clipping.factors.defined()) {
    arena.gradients().narrow(0, first, count).mul_(clipping.factors.unsqueeze(1));
  }
  return clipping.norms;
}

}  // namespace lengthwise::models
