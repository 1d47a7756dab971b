// A linear layer among a network's parameters, initialised as torch.nn.Linear or as its network
// says.
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

// Xavier uniform for a matrix of which this one may be a part (Glorot and Bengio 2010).
Initializer Xavier(int64_t fan_in, int64_t fan_out);

// x W + b or, without `bias`, x W: [P, B, n, fan_in] to [P, B, n, fan_out].
struct LinearLayer {
  ParameterId weight = 0;  // [fan_in, fan_out]
  std::optional<ParameterId> bias;

  at::Tensor operator()(const ParameterSet& parameters, const at::Tensor& features) const;
};

// Adds `name` and "<name>_bias", both uniform up to 1 / sqrt(fan_in): torch.nn.Linear.
LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out);

// The same with a weight of its own start and a bias of zeros.
LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out, const Initializer& weight);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_LINEAR_LAYER_H_
