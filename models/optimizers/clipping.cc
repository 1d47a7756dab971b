#include "ATen/ops/linalg_vector_norm.h"
#include "ATen/ops/ones_like.h"
#include "ATen/ops/where.h"
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {

at::Tensor ClipGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm) {
  at::Tensor gradients = arena.gradients().narrow(0, first, count);
  at::Tensor norms = at::linalg_vector_norm(gradients, 2, at::IntArrayRef{1});
  if (clip_norm > 0) {
    // A norm that is not a number is not below the limit: such gradients become NaN and show in the
    // loss.
    const at::Tensor factors =
        at::where(norms.lt(clip_norm), at::ones_like(norms), norms.reciprocal().mul(clip_norm));
    gradients.mul_(factors.unsqueeze(1));
  }
  return norms;
}

}  // namespace lengthwise::models
