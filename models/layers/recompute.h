// Gradient checkpointing: trades compute for memory by recomputing a part of a network in the
// backward pass (Chen et al. 2016, Training deep nets with sublinear memory cost).
#ifndef LENGTHWISE_MODELS_LAYERS_RECOMPUTE_H_
#define LENGTHWISE_MODELS_LAYERS_RECOMPUTE_H_

#include <functional>

#include "ATen/core/Tensor.h"
#include "models/parameters/arena.h"

namespace lengthwise::models {

// A pure function of its arguments. It and everything that it refers to must outlive the backward
// pass.
using NetworkPart =
    std::function<at::Tensor(const ParameterSet& parameters, const at::Tensor& features)>;

// Returns part(parameters, features). Keeps only `features` until the backward pass, which runs
// `part` again. Gradients are those of `part`.
at::Tensor Recomputed(const ParameterSet& parameters, const at::Tensor& features, NetworkPart part);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_RECOMPUTE_H_
