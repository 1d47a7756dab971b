// A linear layer of a network: its parameters and their initialisation.
#ifndef LENGTHWISE_MODELS_NETWORKS_LINEAR_LAYER_H_
#define LENGTHWISE_MODELS_NETWORKS_LINEAR_LAYER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ATen/core/Tensor.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// U(-bound, bound).
Initializer Uniform(double bound);

// Xavier uniform (Glorot and Bengio 2010). The matrix may be part of one with these sizes.
Initializer Xavier(int64_t fan_in, int64_t fan_out);

// x W + b, or x W without `bias`: maps [P, B, n, fan_in] to [P, B, n, fan_out].
struct LinearLayer {
  ParameterId weight = 0;  // [fan_in, fan_out]
  std::optional<ParameterId> bias;

  at::Tensor operator()(const ParameterSet& parameters, const at::Tensor& features) const;
};

// Adds `name` and "<name>_bias", both uniform up to 1 / sqrt(fan_in), as torch.nn.Linear does.
LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out);

// As above, but with the given initialisation of the weight, and a zero bias.
LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out, const Initializer& weight);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_LINEAR_LAYER_H_
