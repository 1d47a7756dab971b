#include "models/optimizers/optimizer.h"

namespace lengthwise::models {

void Optimizer::Step(ParameterArena& arena, int64_t first, int64_t count, int64_t step,
                     const at::Tensor& learning_rates) const {
  Update(arena, first, count, step, learning_rates);
  at::Tensor parameters = arena.parameters().narrow(0, first, count);
  for (const ParameterLayout::Slot& slot : arena.layout().slots()) {
    if (!slot.minimum.has_value()) continue;
    parameters.narrow(1, slot.offset, slot.size).clamp_min_(*slot.minimum);
  }
}

}  // namespace lengthwise::models
