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
#include "absl/types/span.h"
#include "catalogue/entry.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Immutable; its state (moments) is in the arena and the step number.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // All that a step takes from its number (from 1) and from the members' learning rates, as many
  // numbers as the number of members says. These change from step to step where a recorded step's
  // operations do not.
  virtual std::vector<double> StepNumbers(int64_t step,
                                          absl::Span<const double> learning_rates) const = 0;

  // Updates the parameters of members [first, first + count) from their gradients, each member's
  // times its own of `factors` [count] (undefined: 1), and raises those that have a minimum to it
  // (ParameterLayout::Slot). What the gradients are afterwards is not said. `numbers` are
  // StepNumbers of `count` members, double and on the arena's device.
  void Step(ParameterArena& arena, int64_t first, int64_t count, const at::Tensor& numbers,
            const at::Tensor& factors) const;

  // The same from numbers of the host, with the gradients as they are.
  void Step(ParameterArena& arena, int64_t first, int64_t count, int64_t step,
            absl::Span<const double> learning_rates) const;

 private:
  // Step without regard to minimums.
  virtual void Update(ParameterArena& arena, int64_t first, int64_t count,
                      const at::Tensor& numbers, const at::Tensor& factors) const = 0;
};

// Gradients' norms, and what brings them down to a limit; [count] in the parameters' type.
struct Clipping {
  at::Tensor norms;
  at::Tensor factors;  // undefined where there is no limit
};

// Of members [first, first + count): a gradient g with ||g|| >= clip_norm becomes g / ||g|| *
// clip_norm (optax.clip_by_global_norm), others stay; 0: all stay.
Clipping MeasureGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm);

// Does it to the arena's gradients, for what looks at them, and returns the norms before.
at::Tensor ClipGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm);

// NOT_FOUND for an unknown name. `parameters` come from catalogue::Resolve.
absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(absl::string_view name,
                                                           const catalogue::Parameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_OPTIMIZER_H_
