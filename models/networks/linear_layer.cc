#include "models/networks/linear_layer.h"

#include <cmath>

#include "models/layers/layers.h"

namespace lengthwise::models {

Initializer Uniform(double bound) { return {.kind = Initializer::Kind::kUniform, .value = bound}; }

Initializer Xavier(int64_t fan_in, int64_t fan_out) {
  return Uniform(std::sqrt(6 / static_cast<double>(fan_in + fan_out)));
}

at::Tensor LinearLayer::operator()(const ParameterSet& parameters,
                                   const at::Tensor& features) const {
  return bias.has_value() ? Linear(features, parameters[weight], parameters[*bias])
                          : Linear(features, parameters[weight]);
}

LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out) {
  const Initializer uniform = Uniform(1 / std::sqrt(static_cast<double>(fan_in)));
  const ParameterId weight = layout.Add(name, {fan_in, fan_out}, uniform);
  return {weight, layout.Add(name + "_bias", {fan_out}, uniform)};
}

LinearLayer AddLinearLayer(ParameterLayout& layout, const std::string& name, int64_t fan_in,
                           int64_t fan_out, const Initializer& weight) {
  const ParameterId id = layout.Add(name, {fan_in, fan_out}, weight);
  return {id, layout.Add(name + "_bias", {fan_out}, {.kind = Initializer::Kind::kZeros})};
}

}  // namespace lengthwise::models
