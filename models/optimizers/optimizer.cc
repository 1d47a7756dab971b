#include "models/optimizers/optimizer.h"

#include "ATen/ops/tensor.h"

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

void Optimizer::Step(ParameterArena& arena, int64_t first, int64_t count, int64_t step,
                     absl::Span<const double> learning_rates) const {
  const at::Tensor numbers = at::tensor(StepNumbers(step, learning_rates));
  Step(arena, first, count, numbers.to(arena.parameters().device()), at::Tensor());
}

}  // namespace lengthwise::models
