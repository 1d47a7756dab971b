#include "models/optimizers/optimizer.h"

#include <cstddef>

#include "ATen/ops/linalg_vector_norm.h"
#include "ATen/ops/ones_like.h"
#include "ATen/ops/where.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::models {

void Optimizer::Step(ParameterArena& arena, int64_t first, int64_t count, const at::Tensor& numbers,
                     const at::Tensor& factors) const {
  Update(arena, first, count, numbers, factors);
  at::Tensor parameters = arena.parameters().narrow(0, first, count);
  for (const ParameterLayout::Slot& slot : arena.layout().slots()) {
    if (!slot.minimum.has_value()) continue;
    parameters.narrow(1, slot.offset, slot.size).clamp_min_(*slot.minimum);
  }
}

Clipping MeasureGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm) {
  Clipping clipping;
  clipping.norms =
      at::linalg_vector_norm(arena.gradients().narrow(0, first, count), 2, at::IntArrayRef{1});
  if (clip_norm > 0) {
    const at::Tensor& norms = clipping.norms;
    // A NaN norm is not below the limit, so that the gradients become NaN and the loss shows it.
    clipping.factors =
        at::where(norms.lt(clip_norm), at::ones_like(norms), norms.reciprocal().mul(clip_norm));
  }
  return clipping;
}

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(
    absl::string_view name, const catalogue::Parameters& parameters) {
  using Create = std::unique_ptr<Optimizer> (*)(const catalogue::Parameters&);
  // Same order as OptimizerEntries: both expand one list.
#define LENGTHWISE_CREATE(Name) Create##Name,
  static constexpr Create kCreate[] = {LENGTHWISE_OPTIMIZERS(LENGTHWISE_CREATE)};
#undef LENGTHWISE_CREATE
  for (size_t i = 0; i < OptimizerEntries().size(); ++i) {
    if (OptimizerEntries()[i]->name == name) return kCreate[i](parameters);
  }
  return absl::NotFoundError(absl::StrCat("unknown optimizer \"", name, "\""));
}

}  // namespace lengthwise::models
