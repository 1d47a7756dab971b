// A residual addition and the layer norm behind it, as every block of a post-layer-norm network has
// twice.
#ifndef LENGTHWISE_MODELS_NETWORKS_RESIDUAL_NORM_H_
#define LENGTHWISE_MODELS_NETWORKS_RESIDUAL_NORM_H_

#include <cstdint>
#include <string>

#include "ATen/core/Tensor.h"
#include "models/networks/network.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

class ResidualNorm {
 public:
  // Adds "<name>.scale", ones, and "<name>.offset", zeros, of `d` features to the layout.
  ResidualNorm(ParameterLayout& layout, const std::string& name, int64_t d);

  // LN(h + change), [P, B, n, d], which `capture` keeps among its layer outputs unless it is null.
  at::Tensor operator()(const ParameterSet& parameters, const at::Tensor& h,
                        const at::Tensor& change, Capture* capture) const;

 private:
  ParameterId scale_;
  ParameterId offset_;
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_NETWORKS_RESIDUAL_NORM_H_
