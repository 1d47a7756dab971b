// Memory for time: what a part of a network keeps for its backward pass is dropped and computed
// again when it is needed (Chen et al. 2016, Training deep nets with sublinear memory cost).
#ifndef LENGTHWISE_MODELS_LAYERS_RECOMPUTE_H_
#define LENGTHWISE_MODELS_LAYERS_RECOMPUTE_H_

#include <functional>

#include "ATen/core/Tensor.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// A function of its arguments alone, which outlives the backward pass with all that it refers to.
using NetworkPart =
    std::function<at::Tensor(const ParameterSet& parameters, const at::Tensor& features)>;

// part(parameters, features). Until the backward pass, which runs `part` again, no more than
// `features` is kept. Gradients are those of part itself.
at::Tensor Recomputed(const ParameterSet& parameters, const at::Tensor& features, NetworkPart part);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_RECOMPUTE_H_
