// Optimizers over whole arenas: a few operations on [P, N] tensors, however many parameters a model
// has.
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
#include "models/optimizers/catalogue.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// Immutable. State (moments) lives in the arena, and in the step number.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // All numbers that a step derives from its index (from 1) and the members' learning rates. Their
  // count depends only on the number of members. A recorded step replays the same operations on new
  // numbers.
  virtual std::vector<double> StepNumbers(int64_t step,
                                          absl::Span<const double> learning_rates) const = 0;

  // Updates the parameters of members [first, first + count) from their gradients, each member's
  // scaled by its `factors` [count] (undefined: 1). Then raises parameters to their minimum, if
  // they have one (ParameterLayout::Slot). The gradients are unspecified afterwards. `numbers` are
  // StepNumbers of `count` members, double and on the arena's device.
  void Step(ParameterArena& arena, int64_t first, int64_t count, const at::Tensor& numbers,
            const at::Tensor& factors) const;

  // True if Step asks for FusedOperation::kAdam, the only fused optimizer.
  virtual bool HasFusedKernel() const { return false; }

 private:
  // Step without the minimums.
  virtual void Update(ParameterArena& arena, int64_t first, int64_t count,
                      const at::Tensor& numbers, const at::Tensor& factors) const = 0;
};

// Norms of gradients, and factors that clip them; [count] in the parameters' type.
struct Clipping {
  at::Tensor norms;
  at::Tensor factors;  // undefined without a limit
};

// Measures members [first, first + count). Factors turn a gradient g with ||g|| >= clip_norm into
// g / ||g|| * clip_norm (optax.clip_by_global_norm) and leave others alone. clip_norm 0 disables
// clipping.
Clipping MeasureGradients(ParameterArena& arena, int64_t first, int64_t count, double clip_norm);

// Returns NOT_FOUND for an unknown name. `parameters` come from catalogue::Resolve.
absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(absl::string_view name,
                                                           const catalogue::Parameters& parameters);

// Factory functions of the optimizers. Each optimizer's own file defines its CreateNAME.
#define LENGTHWISE_CREATE(Name) \
  std::unique_ptr<Optimizer> Create##Name(const catalogue::Parameters& parameters);
LENGTHWISE_OPTIMIZERS(LENGTHWISE_CREATE)
#undef LENGTHWISE_CREATE

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_OPTIMIZERS_OPTIMIZER_H_
