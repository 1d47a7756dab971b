// Optimizers over whole arenas: a few operations on [P, N] tensors, whatever the number of
// parameters.
#ifndef LENGTHWISE_MODELS_OPTIMIZERS_OPTIMIZER_H_
#define LENGTHWISE_MODELS_OPTIMIZERS_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Immutable; its state (moments) is in the arena and the step number.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates the parameters of members [first, first + count) from their gradients and raises those
  // that have a minimum to it (ParameterLayout::Slot). `step` counts from 1; `learning_rates` has
  // one value a member, double [count].
  void Step(ParameterArena& arena, int64_t first, int64_t count, int64_t step,
            const at::Tensor& learning_rates) const;

 private:
  // Step without regard to minimums.
  virtual void Update(ParameterArena& arena, int64_t first, int64_t count, int64_t step,
                      const at::Tensor& learning_rates) const = 0;
};

// Scales each member's gradient down to norm `clip_norm` where it is larger (0: never) and returns
// the norms before, [count] in the parameters' type: g / ||g|| * clip_norm if ||g|| >= clip_norm
// (optax.clip_by_global_norm).
at::Tensor ClipGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm);

// The names that CreateOptimizer knows.
std::vector<std::string> ImplementedOptimizers();

// NOT_FOUND for an unknown name. `parameters` come from catalogue::Resolve.
absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(absl::string_view name,
                                                           const catalogue::Parameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_OPTIMIZER_H_
