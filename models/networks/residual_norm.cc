#include "models/networks/residual_norm.h"

#include "models/layers/add_layer_norm.h"

namespace lengthwise::models {

ResidualNorm::ResidualNorm(ParameterLayout& layout, const std::string& name, int64_t d)
    : scale_(layout.Add(name + ".scale", {d}, {.kind = Initializer::Kind::kOnes})),
      offset_(layout.Add(name + ".offset", {d}, {.kind = Initializer::Kind::kZeros})) {}

at::Tensor ResidualNorm::operator()(const ParameterSet& parameters, const at::Tensor& h,
                                    const at::Tensor& change, Capture* capture) const {
  at::Tensor output = AddLayerNorm(h, change, parameters[scale_], parameters[offset_]);
  if (capture != nullptr) capture->layer_outputs.push_back(output);
  return output;
}

}  // namespace lengthwise::models
